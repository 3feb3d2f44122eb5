package registry

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// checkKeys returns an error about the first key of a block that its struct does not
// have in just this form: encoding/json would take it in any case of its letters, and
// would not say where it is. A type that decodes itself is left to itself.
func checkKeys(t reflect.Type, raw json.RawMessage, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if decodesItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkStruct(t, raw, path)
	case reflect.Map:
		return checkMembers(raw, path, func(string) reflect.Type { return t.Elem() })
	case reflect.Slice, reflect.Array:
		return checkItems(t.Elem(), raw, path)
	default:
		return nil
	}
}

func decodesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func checkStruct(t reflect.Type, raw json.RawMessage, path string) error {
	fields, known := map[string]reflect.Type{}, []string(nil)
	for _, field := range reflect.VisibleFields(t) {
		if name := keyOf(field); name != "" {
			fields[name] = field.Type
			known = append(known, name)
		}
	}
	members := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &members) != nil {
		return nil // of another kind, which decoding says in its own words
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if _, has := fields[key]; !has {
			return fmt.Errorf("unknown key %q%s, want %s", key, in(path), strings.Join(known, ", "))
		}
	}
	return checkMembers(raw, path, func(key string) reflect.Type { return fields[key] })
}

func checkMembers(raw json.RawMessage, path string, of func(key string) reflect.Type) error {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if err := checkKeys(of(key), members[key], strings.TrimPrefix(path+"."+key, ".")); err != nil {
			return err
		}
	}
	return nil
}

func checkItems(of reflect.Type, raw json.RawMessage, path string) error {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	for i, item := range items {
		if err := checkKeys(of, item, path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return nil
}

// keyOf is the name of a field in JSON; empty for one that has none of its own.
func keyOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case name == "-" || !field.IsExported() || field.Anonymous && name == "":
		return ""
	case name == "":
		return field.Name
	default:
		return name
	}
}

func in(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}
