package strictjson

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// plainText is what a name looks like, and a document does not.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)

func plain(s string) bool { return plainText.MatchString(s) }

// is reports whether t is of one of the kinds and is written as such. Nil is of
// every kind; a type with a form of its own, such as time.Time, is of none.
func is(t reflect.Type, kinds ...reflect.Kind) bool {
	return t == nil || slices.Contains(kinds, t.Kind()) && !reflect.PointerTo(t).Implements(unmarshaler)
}

// membersOf returns what finds the type of a member by its exact name.
func membersOf(t reflect.Type) func(name string) (reflect.Type, bool) {
	if t == nil || t.Kind() == reflect.Map {
		return func(string) (reflect.Type, bool) { return element(t), true }
	}
	members := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		if name := memberName(field); name != "" {
			members[name] = field.Type
		}
	}
	return func(name string) (reflect.Type, bool) {
		member, known := members[name]
		return member, known
	}
}

// memberNames lists the members of a struct in its order.
func memberNames(t reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(t) {
		if name := memberName(field); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// memberName is what JSON calls a field; empty when it does not know it.
func memberName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// element returns what a map or slice holds; nil holds anything.
func element(t reflect.Type) reflect.Type {
	if t == nil {
		return nil
	}
	return t.Elem()
}

// wantedNames say in an Error what a type takes.
var wantedNames = map[reflect.Kind]string{
	reflect.String: "a string",
	reflect.Bool:   "true or false",
	reflect.Int:    "a whole number",
	reflect.Int64:  "a whole number",
	reflect.Slice:  "an array",
	reflect.Struct: "an object",
	reflect.Map:    "an object",
}

func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(unmarshaler) { // written in a form of its own
		return "of the right form"
	}
	return cmp.Or(wantedNames[t.Kind()], "of the right type")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// named is how an Error calls a path.
func named(path string) string { return cmp.Or(path, Root) }
