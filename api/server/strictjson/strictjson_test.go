package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server/strictjson"
)

type inner struct {
	Word  string            `json:"word"`
	Words map[string]string `json:"words"`
}

type sample struct {
	Text   string    `json:"text,omitempty"`
	Number int       `json:"number"`
	Big    int64     `json:"big"`
	Switch bool      `json:"switch"`
	Inner  inner     `json:"inner"`
	Maybe  *inner    `json:"maybe"`
	List   []inner   `json:"list"`
	Time   time.Time `json:"time"`
	Secret string    `json:"secret"`
	Gone   inner     `json:"gone"`
	Unseen string    `json:"-"`
}

var rules = strictjson.Rules{
	Ignored: []string{"gone", "inner.ignored"},
	Hidden: func(path string, known bool) bool {
		return strings.HasPrefix(path, "secret") || path == "lost" && !known
	},
}

func TestAGoodTextIsDecodedWhole(t *testing.T) {
	t.Parallel()
	const text = ` {"text": "ü \ud83d\ude00 \\ud800 \u2028 \"", "number": -7, "big": 9223372036854775807, "switch": true,
		"inner": {"word": "w", "words": {"a.b": "c", "": "d"}}, "maybe": {"word": "m"},
		"list": [{"word": "1"}, {}], "time": "2026-01-02T03:04:05Z", "gone": [null, {"x": {"y": 1e999}}]}` + "\n\t\r "
	var got sample
	require.NoError(t, strictjson.Decode([]byte(text), &got, rules))
	require.Equal(t, sample{
		Text: "ü 😀 \\ud800 \u2028 \"", Number: -7, Big: 9223372036854775807, Switch: true,
		Inner: inner{"w", map[string]string{"a.b": "c", "": "d"}}, Maybe: &inner{Word: "m"},
		List: []inner{{Word: "1"}, {}}, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}, got)
}

func malformed(problem string) *strictjson.Error {
	return &strictjson.Error{Kind: strictjson.Malformed, Field: "body", Problem: problem}
}

func unknown(field, value string) *strictjson.Error {
	there := "text, number, big, switch, inner, maybe, list, time, secret, gone"
	if strings.HasPrefix(field, "inner.") {
		there = "word, words"
	}
	return &strictjson.Error{
		Kind: strictjson.Unknown, Field: field, Value: value, Problem: "is not a field; there are " + there,
	}
}

func twice(field, value string) *strictjson.Error {
	return &strictjson.Error{Kind: strictjson.Duplicate, Field: field, Value: value, Problem: "is there twice"}
}

func outside(field, value string) *strictjson.Error {
	return &strictjson.Error{Kind: strictjson.OutOfRange, Field: field, Value: value, Problem: "is out of range"}
}

func mistyped(field, value, problem string) *strictjson.Error {
	return &strictjson.Error{Kind: strictjson.WrongType, Field: field, Value: value, Problem: problem}
}

func TestABadTextSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]struct {
		text string
		want *strictjson.Error
	}{
		"nothing":        {"", malformed("is empty")},
		"an early end":   {`{"text": `, malformed("ends too early at line 1, column 10")},
		"a later line":   {"{\n\t\"text\": ü}", malformed("is not JSON at line 2, column 10")},
		"a second value": {"{}\n {}", malformed("has something after the JSON value at line 2, column 2")},
		"a bad byte":     {"{\"text\": \"ü\xc3\"}", malformed("is not UTF-8 at line 1, column 12")},
		"a lone high half": {
			`{"text": "\ud83d"}`,
			malformed("holds half a character (a lone surrogate) at line 1, column 11"),
		},
		"a lone low half": {
			`{"text": "a\\\ude00"}`,
			malformed("holds half a character (a lone surrogate) at line 1, column 14"),
		},
		"two high halves": {
			`{"text": "\ud83d\ud83d\ude00"}`,
			malformed("holds half a character (a lone surrogate) at line 1, column 11"),
		},
		"a half in a name": {
			`{"\ud83dx": 1}`,
			malformed("holds half a character (a lone surrogate) at line 1, column 3"),
		},
		"too deep": {
			`{"gone": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
			malformed("is nested more than 32 deep"),
		},
		"null":               {`null`, mistyped("body", "null", "is not an object")},
		"an inner null":      {`{"maybe": null}`, mistyped("maybe", "null", "is not an object")},
		"an unknown name":    {`{"inner": {"wort": 1.50}}`, unknown("inner.wort", "1.50")},
		"other capitals":     {`{"Text": "a"}`, unknown("Text", "a")},
		"a field of no name": {`{"Unseen": "a"}`, unknown("Unseen", "a")},
		"a dash":             {`{"-": "a"}`, unknown("-", "a")},
		"an ignored path that is no field": {
			`{"inner": {"ignored": []}}`,
			unknown("inner.ignored", "[…]"),
		},
		"a document under an unknown name": {
			`{"inner": {"wort": "a b"}}`,
			unknown("inner.wort", "(hidden)"),
		},
		"a hidden name":             {`{"lost": "x"}`, unknown("lost", "(hidden)")},
		"a hidden number":           {`{"secret": 5}`, mistyped("secret", "(hidden)", "is not a string")},
		"a name that may be hidden": {`{"secret key": {}}`, unknown("(hidden)", "{…}")},
		"a name twice":              {`{"text": "a", "text": "b c"}`, twice("text", "b c")},
		"a map's name twice":        {`{"inner": {"words": {"a": "1", "\u0061": "2"}}}`, twice("inner.words.a", "2")},
		"an ignored name twice":     {`{"gone": {"a": 1, "a": "x y"}}`, twice("gone.a", "(hidden)")},
		"a list's member": {
			`{"list": [{}, {"word": 1}]}`,
			mistyped("list[1].word", "1", "is not a string"),
		},
		"a list that is none":    {`{"list": {}}`, mistyped("list", "{…}", "is not an array")},
		"an object that is none": {`{"inner": "x y"}`, mistyped("inner", "(hidden)", "is not an object")},
		"a map that is none": {
			`{"inner": {"words": true}}`,
			mistyped("inner.words", "true", "is not an object"),
		},
		"a text that is none":      {`{"text": true}`, mistyped("text", "true", "is not a string")},
		"a switch that is none":    {`{"switch": 0}`, mistyped("switch", "0", "is not true or false")},
		"a number that is none":    {`{"number": "x y"}`, mistyped("number", "x y", "is not a whole number")},
		"a fraction":               {`{"number": 1.0}`, mistyped("number", "1.0", "is not a whole number")},
		"a number that is too big": {`{"big": 9223372036854775808}`, outside("big", "9223372036854775808")},
		"a time that is none":      {`{"time": "noon"}`, mistyped("time", "noon", "is not of the right form")},
		"a time that is an object": {`{"time": {}}`, mistyped("time", "{…}", "is not of the right form")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var into sample
			err := strictjson.Decode([]byte(bad.text), &into, rules)
			require.Equal(t, bad.want, err)
			require.Empty(t, into, "a bad text decodes nothing")
		})
	}
}

func FuzzDecodeAgreesWithEncodingJSON(f *testing.F) {
	f.Add(`{"text": "a", "inner": {"words": {"a": "b"}}, "list": [{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var into sample
		if strictjson.Decode([]byte(text), &into, strictjson.Rules{}) != nil {
			return
		}
		var plain sample
		require.NoError(t, json.Unmarshal([]byte(text), &plain))
		require.Equal(t, plain, into)
	})
}
