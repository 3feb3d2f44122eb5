package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// maxDepth is far above what any type of ours needs, and far below what a stack bears.
const maxDepth = 32

// What an Error shows in place of a value.
const (
	anObject = "{…}"
	anArray  = "[…]"
	// Hidden stands for what may be a secret.
	Hidden = "(hidden)"
)

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// walker reads valid JSON along a type. The type is nil where anything goes.
type walker struct {
	dec   *json.Decoder
	rules Rules
	depth int
}

// value reads one value and returns what there is to decode of it.
func (w *walker) value(path string, t reflect.Type) (any, error) {
	token, err := w.dec.Token()
	if err != nil {
		return nil, &Error{Malformed, Root, "", "cannot be read"} // cannot be: it was parsed before
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxDepth {
		return nil, &Error{Malformed, Root, "", fmt.Sprintf("is nested more than %d deep", maxDepth)}
	}
	switch {
	case token == json.Delim('{') && is(t, reflect.Struct, reflect.Map):
		return w.object(path, t)
	case token == json.Delim('[') && is(t, reflect.Slice):
		return w.array(path, t)
	case t == nil:
		return token, nil
	default:
		return token, w.leaf(path, t, token)
	}
}

func (w *walker) object(path string, t reflect.Type) (any, error) {
	out := map[string]any{}
	seen := map[string]bool{}
	members := membersOf(t)
	for w.dec.More() {
		token, _ := w.dec.Token() // More says that there is a name
		key, _ := token.(string)
		at := join(path, key)
		member, known := members(key)
		switch {
		case seen[key]:
			return nil, &Error{Duplicate, at, w.next(at, known && member != nil), "is there twice"}
		case !known:
			return nil, &Error{
				Unknown, w.unknown(path, key), w.next(at, false),
				"is not a field; there are " + strings.Join(memberNames(t), ", "),
			}
		}
		seen[key] = true
		ignored := w.rules.ignored(at)
		if ignored {
			member = nil
		}
		value, err := w.value(at, member)
		if err != nil {
			return nil, err
		}
		if !ignored {
			out[key] = value
		}
	}
	_, _ = w.dec.Token() // the brace
	return out, nil
}

func (w *walker) array(path string, t reflect.Type) (any, error) {
	out := []any{}
	for i := 0; w.dec.More(); i++ {
		value, err := w.value(fmt.Sprintf("%s[%d]", path, i), element(t))
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	_, _ = w.dec.Token() // the bracket
	return out, nil
}

// leaf reports whether encoding/json would take token for t; null is never taken.
func (w *walker) leaf(path string, t reflect.Type, token json.Token) error {
	if _, opens := token.(json.Delim); !opens && token != nil {
		text, err := json.Marshal(token)
		if err == nil && json.Unmarshal(text, reflect.New(t).Interface()) == nil {
			return nil
		}
	}
	number, numeric := token.(json.Number)
	if numeric && is(t, reflect.Int, reflect.Int64) && !strings.ContainsAny(number.String(), ".eE") {
		return &Error{OutOfRange, named(path), w.show(path, true, token), "is out of range"}
	}
	// A text where an object belongs may be a whole document, so it is not shown.
	misplaced := is(t, reflect.Struct, reflect.Map, reflect.Slice)
	return &Error{WrongType, named(path), w.show(path, !misplaced, token), "is not " + wanted(t)}
}

// unknown returns the path of a member that the type does not have. Its name is
// shown, too, unless it may be a piece of what is hidden.
func (w *walker) unknown(path, key string) string {
	if !plain(key) && w.rules.hidden(join(path, key), false) {
		key = Hidden
	}
	return join(path, key)
}

// next reads on, to show the value of the member whose name was just read.
func (w *walker) next(path string, known bool) string {
	token, _ := w.dec.Token()
	return w.show(path, known, token)
}

// show returns how an Error writes a value. Known says that its field is one that
// holds single values.
func (w *walker) show(path string, known bool, token json.Token) string {
	switch value := token.(type) {
	case json.Delim:
		if value == '{' {
			return anObject
		}
		return anArray
	case nil:
		return "null"
	case string:
		if !known && !plain(value) || w.rules.hidden(path, known) {
			return Hidden
		}
		return value
	default: // a number or a boolean
		if w.rules.hidden(path, true) {
			return Hidden
		}
		return fmt.Sprint(value)
	}
}
