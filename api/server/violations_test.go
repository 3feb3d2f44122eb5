package server_test

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// violation is a value that breaks one keyword of a schema, and where.
type violation struct {
	keyword string
	field   string // a path in the value; empty: the value itself
	value   any
}

// broken are the ways to break each keyword of a schema. A keyword that is in neither of
// the two tables fails the test: nobody would know whether the server holds it.
func broken() map[string]func(*testing.T, *openapi3.Schema, string) []violation {
	return map[string]func(*testing.T, *openapi3.Schema, string) []violation{
		"type":                 breakType,
		"enum":                 one("enum", func(*openapi3.Schema) any { return "nonsense" }),
		"minimum":              one("minimum", func(s *openapi3.Schema) any { return *s.Min - 1 }),
		"maximum":              one("maximum", func(s *openapi3.Schema) any { return *s.Max + 1 }),
		"minLength":            one("minLength", tooShort),
		"maxLength":            breakMaxLength,
		"pattern":              breakPattern,
		"format":               breakFormat,
		"required":             breakRequired,
		"properties":           breakProperties,
		"additionalProperties": breakAdditional,
		"maxProperties":        breakMaxProperties,
		"allOf":                breakAllOf,
	}
}

// words say nothing about what is valid.
var words = []string{"title", "description", "example", "default"}

// violations returns every way to break a schema that the schema itself names.
func violations(t *testing.T, schema *openapi3.Schema, field string) (all []violation) {
	t.Helper()
	text, err := schema.MarshalJSON()
	require.NoError(t, err)
	var keywords map[string]any
	require.NoError(t, json.Unmarshal(text, &keywords))
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		if slices.Contains(words, keyword) || strings.HasPrefix(keyword, "x-") {
			continue
		}
		breaks, known := broken()[keyword]
		require.True(t, known, "%s: no test knows how to break the keyword %s", field, keyword)
		all = append(all, breaks(t, schema, field)...)
	}
	return all
}

func one(
	keyword string, value func(*openapi3.Schema) any,
) func(*testing.T, *openapi3.Schema, string) []violation {
	return func(_ *testing.T, s *openapi3.Schema, field string) []violation {
		return []violation{{keyword, field, value(s)}}
	}
}

func tooShort(s *openapi3.Schema) any { return strings.Repeat("a", int(s.MinLength)-1) }

// breakMaxLength is a character too many, of those that the pattern takes where that can be
// told, and of whole words: a server may refuse one for another reason than its length.
func breakMaxLength(_ *testing.T, s *openapi3.Schema, field string) (all []violation) {
	length := int(*s.MaxLength) + 1
	for _, word := range []string{"a", "1", "a,", "a.", "a "} {
		text := strings.Repeat(word, length)[:length]
		if fits(s.Pattern, text) || word == "a" {
			all = append(all, violation{"maxLength", field, text})
		}
	}
	return all
}

func fits(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

func breakType(t *testing.T, s *openapi3.Schema, field string) (all []violation) {
	t.Helper()
	for _, other := range []struct {
		kind  string
		value any
	}{
		{"string", "text"}, {"integer", 7.0}, {"number", 1.5}, {"boolean", true}, {"object", map[string]any{}}, {"null", nil},
	} {
		// kin-openapi puts the default where a null is, which the server does not.
		if !s.Type.Is(other.kind) && (other.value != nil || s.Default == nil) {
			all = append(all, violation{"type", field, other.value})
		}
	}
	return append(all, violation{"type", field, []any{}})
}

func breakPattern(t *testing.T, s *openapi3.Schema, field string) []violation {
	t.Helper()
	var all []violation
	for _, text := range []string{"!", "\u00fc", "a b", "A", "-1s", "../a", "a\n"} {
		if !fits(s.Pattern, text) {
			all = append(all, violation{"pattern", field, text})
		}
	}
	return all
}

func breakFormat(t *testing.T, s *openapi3.Schema, field string) []violation {
	t.Helper()
	require.Equal(t, "byte", s.Format, "%s: no test knows how to break the format", field)
	return []violation{{"format", field, "%%%"}}
}

func breakRequired(t *testing.T, s *openapi3.Schema, field string) (all []violation) {
	t.Helper()
	for _, name := range s.Required {
		without := valid(t, s).(map[string]any)
		delete(without, name)
		all = append(all, violation{"required", under(field, name), without})
	}
	return all
}

func breakProperties(t *testing.T, s *openapi3.Schema, field string) (all []violation) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		for _, inner := range violations(t, s.Properties[name].Value, under(field, name)) {
			all = append(all, violation{inner.keyword, inner.field, with(t, s, name, inner.value)})
		}
	}
	return all
}

func breakAdditional(t *testing.T, s *openapi3.Schema, field string) (all []violation) {
	t.Helper()
	if s.AdditionalProperties.Schema == nil {
		require.False(t, *s.AdditionalProperties.Has, field)
		return []violation{{"additionalProperties", under(field, "nonsense"), with(t, s, "nonsense", "x")}}
	}
	for _, inner := range violations(t, s.AdditionalProperties.Schema.Value, under(field, "key")) {
		all = append(all, violation{inner.keyword, inner.field, with(t, s, "key", inner.value)})
	}
	return all
}

func breakMaxProperties(t *testing.T, s *openapi3.Schema, field string) []violation {
	t.Helper()
	full := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties))[:*s.MaxProps+1] {
		full[name] = valid(t, s.Properties[name].Value)
	}
	return []violation{{"maxProperties", field, full}}
}

func breakAllOf(t *testing.T, s *openapi3.Schema, field string) (all []violation) {
	t.Helper()
	for _, part := range s.AllOf {
		all = append(all, violations(t, part.Value, field)...)
	}
	return all
}

// with is a valid object with one member more, or another one.
func with(t *testing.T, s *openapi3.Schema, name string, value any) map[string]any {
	t.Helper()
	object := valid(t, s).(map[string]any)
	object[name] = value
	return object
}

// valid is the smallest value that a schema takes, as far as it takes one of these.
func valid(t *testing.T, s *openapi3.Schema) any {
	t.Helper()
	if s.Type != nil && s.Type.Is("object") {
		object := map[string]any{}
		for _, name := range s.Required {
			object[name] = valid(t, s.Properties[name].Value)
		}
		return object
	}
	candidates := append(slices.Clone(s.Enum), "a", "1h", "YQ==", 1.0, true, math.MaxInt32)
	for _, candidate := range candidates {
		if s.VisitJSON(candidate, openapi3.EnableFormatValidation()) == nil {
			return candidate
		}
	}
	require.FailNow(t, "no test knows a valid value", s.Description)
	return nil
}

func under(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}
