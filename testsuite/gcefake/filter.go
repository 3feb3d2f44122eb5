package gcefake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
)

// filtered keeps what a filter says: comparisons of a field with a value, by = and !=,
// by : for a label that is there or a value that contains, and by the older eq and ne
// with a regular expression. Comparisons stand in parentheses, or are joined by AND or
// OR; side by side they are joined by AND. Other operators are refused, not ignored.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/list, filter
func filtered(all []entry, filter string) ([]entry, error) {
	if strings.TrimSpace(filter) == "" {
		return all, nil
	}
	keeps, err := parseFilter(filter)
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, e := range all {
		raw, err := protojson.Marshal(e.msg)
		if err != nil {
			return nil, err
		}
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, err
		}
		if keeps(fields) {
			out = append(out, e)
		}
	}
	return out, nil
}

type condition func(fields map[string]any) bool

var words = regexp.MustCompile(`\(|\)|"(?:[^"\\]|\\.)*"|!=|=|:|[^\s()=:!"]+`)

type parser struct{ rest []string }

func parseFilter(filter string) (condition, error) {
	p := &parser{rest: words.FindAllString(filter, -1)}
	keeps, ok := p.any()
	if !ok || len(p.rest) > 0 {
		return nil, refusal(http.StatusBadRequest, "invalid",
			"Invalid value for field 'filter': '%s'. Invalid list filter expression.", filter)
	}
	return keeps, nil
}

func (p *parser) take(word string) bool {
	if len(p.rest) == 0 || p.rest[0] != word {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// any is one or more groups of which one has to hold.
func (p *parser) any() (condition, bool) {
	one, ok := p.all()
	for ok && p.take("OR") {
		left, right := one, condition(nil)
		right, ok = p.all()
		one = func(f map[string]any) bool { return left(f) || right(f) }
	}
	return one, ok
}

// all is one or more comparisons of which each has to hold.
func (p *parser) all() (condition, bool) {
	one, ok := p.one()
	for ok && len(p.rest) > 0 && p.rest[0] != ")" && p.rest[0] != "OR" {
		p.take("AND")
		left, right := one, condition(nil)
		right, ok = p.one()
		one = func(f map[string]any) bool { return left(f) && right(f) }
	}
	return one, ok
}

func (p *parser) one() (condition, bool) {
	if p.take("(") {
		inner, ok := p.any()
		return inner, ok && p.take(")")
	}
	if len(p.rest) < 3 {
		return nil, false
	}
	field, op, value := p.rest[0], p.rest[1], strings.Trim(p.rest[2], `"`)
	p.rest = p.rest[3:]
	for len(p.rest) > 1 && p.rest[0] == ":" { // a URL without quotes
		value += ":" + p.rest[1]
		p.rest = p.rest[2:]
	}
	return comparison(field, op, value)
}

func comparison(field, op, value string) (condition, bool) {
	is := func(f map[string]any) (string, bool) { return lookup(f, strings.Split(field, ".")) }
	equal := condition(func(f map[string]any) bool { have, ok := is(f); return ok && have == value })
	not := func(c condition) condition { return func(f map[string]any) bool { return !c(f) } }
	switch {
	case op == "=":
		return equal, true
	case op == "!=":
		return not(equal), true
	case op == ":":
		return func(f map[string]any) bool {
			have, ok := is(f)
			return ok && (value == "*" || strings.Contains(have, value))
		}, true
	case slices.Contains([]string{"eq", "ne"}, op):
		whole, err := regexp.Compile("^(?:" + value + ")$")
		if err != nil {
			return nil, false
		}
		matches := condition(func(f map[string]any) bool { have, ok := is(f); return ok && whole.MatchString(have) })
		if op == "ne" {
			return not(matches), true
		}
		return matches, true
	}
	return nil, false
}

// lookup finds a field by its path. A label's key may have no dots, so neither do ours.
func lookup(fields map[string]any, path []string) (string, bool) {
	value, ok := fields[path[0]]
	if !ok {
		return "", false
	}
	if inner, is := value.(map[string]any); is {
		if len(path) == 1 {
			return "", false
		}
		return lookup(inner, path[1:])
	}
	return fmt.Sprint(value), len(path) == 1
}
