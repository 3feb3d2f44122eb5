package registry

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// instead goes on after an unknown key: where it is and which keys there are. It is
// empty where the key is in a type with a form of its own.
func instead(t reflect.Type, block json.RawMessage, key string) string {
	path, known, found := findUnknown(t, block, key)
	switch {
	case !found || len(known) == 0:
		return ""
	case path != "":
		return " in " + path + ", want " + strings.Join(known, ", ")
	default:
		return ", want " + strings.Join(known, ", ")
	}
}

// findUnknown returns the path of the first mapping that has key where its struct
// does not, and the keys of that struct. encoding/json tells only the key.
func findUnknown(t reflect.Type, raw json.RawMessage, key string) (path string, known []string, found bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var members map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(raw, &members) != nil {
		return "", nil, false
	}
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = field.Type
			known = append(known, name)
		}
	}
	if _, has := members[key]; has && !hasFold(known, key) {
		return "", known, true
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field, is := fields[name]
		if !is {
			continue
		}
		if path, known, found = findUnknown(field, members[name], key); found {
			return strings.TrimSuffix(name+"."+path, "."), known, true
		}
	}
	return "", nil, false
}

// hasFold compares as encoding/json does, which takes a key in any case.
func hasFold(known []string, key string) bool {
	return slices.ContainsFunc(known, func(one string) bool { return strings.EqualFold(one, key) })
}
