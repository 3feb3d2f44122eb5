// Package strictjson decodes a JSON text that must be exactly right: UTF-8, one
// value, known and exact names, none of them twice, no null, the right types. What
// is wrong is reported with the full path of the field, which encoding/json does
// not know. It imports only the standard library; start reading at Decode.
package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Kind says what sort of wrong an Error is.
type Kind int

// The kinds.
const (
	Malformed  Kind = iota + 1 // no JSON, no UTF-8, or more than one value
	Duplicate                  // a name twice in one object
	Unknown                    // a name that the type does not have
	WrongType                  // a value of another type, null included
	OutOfRange                 // a whole number that its type cannot hold
)

// Root is the Field of an Error about the whole text.
const Root = "body"

// Error is the first thing that is wrong with a text. It never holds what the
// rules hide.
type Error struct {
	Kind    Kind
	Field   string // spec.placement.zon, or Root
	Value   string // not cut; "{…}", "[…]" and "(hidden)" stand for what is not shown
	Problem string
}

// Error names the field, the value and the problem.
func (e *Error) Error() string { return fmt.Sprintf("%s: %q %s", e.Field, e.Value, e.Problem) }

// Rules are what a type cannot say about its text.
type Rules struct {
	// Ignored paths are read past: whatever they hold is neither checked against the
	// type nor decoded. A name twice is refused there, too.
	Ignored []string
	// Hidden reports whether an Error must not show what a path holds. Nil hides none.
	Hidden func(path string, known bool) bool
}

// Decode sets into, a pointer, to what the text says. An error is an *Error;
// nothing is decoded then.
func Decode(text []byte, into any, rules Rules) error {
	value, err := parse(text)
	if err != nil {
		return err
	}
	w := walker{dec: newDecoder(value), rules: rules}
	checked, err := w.value("", reflect.TypeOf(into).Elem())
	if err != nil {
		return err
	}
	clean, err := json.Marshal(checked)
	if err != nil {
		return &Error{Malformed, Root, "", "cannot be read"}
	}
	if json.Unmarshal(clean, into) != nil { // cannot be: every value was tried
		return &Error{Malformed, Root, "", "cannot be read"}
	}
	return nil
}

func (r Rules) ignored(path string) bool { return slices.Contains(r.Ignored, path) }

func (r Rules) hidden(path string, known bool) bool { return r.Hidden != nil && r.Hidden(path, known) }
