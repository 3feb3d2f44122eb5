package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// secretFields are those whose values no message may hold.
const secretFields = "spec.cloudInit"

// shownValue is how much of a value a message quotes, in bytes.
const shownValue = 80

// checkShape returns nil when a document has only the fields of a struct, each once
// and of its kind. Unlike a decoder it knows line, path and value of what is wrong.
// It retags dates in the place of text, so that they stay as they were written.
func checkShape(n *yaml.Node, into any) error {
	return shape(n, "", reflect.TypeOf(into).Elem())
}

func shape(n *yaml.Node, path string, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Tag == "!!null" { // nothing is the zero value
		return nil
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return timestamp(n, path)
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return mapping(n, path, t)
	case t.Kind() == reflect.Slice:
		return sequence(n, path, t.Elem())
	default:
		return scalar(n, path, t.Kind())
	}
}

func mapping(n *yaml.Node, path string, t reflect.Type) error {
	if n.Kind != yaml.MappingNode {
		return fault(n, path, "is not a set of fields")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field := strings.TrimPrefix(path+"."+key.Value, ".")
		of, known := fieldType(t, key.Value)
		switch {
		case !known:
			return fmt.Errorf("line %d: %s: unknown field; there are %s", key.Line, field, strings.Join(fieldNames(t), ", "))
		case key.ShortTag() != "!!str":
			return fmt.Errorf("line %d: %s: the name is not text; put it in quotes", key.Line, field)
		case seen[key.Value]:
			return fmt.Errorf("line %d: %s: is there twice", key.Line, field)
		}
		seen[key.Value] = true
		if err := shape(value, field, of); err != nil {
			return err
		}
	}
	return nil
}

func sequence(n *yaml.Node, path string, of reflect.Type) error {
	if n.Kind != yaml.SequenceNode {
		return fault(n, path, "is not a list")
	}
	for i, item := range n.Content {
		if err := shape(item, path+"["+strconv.Itoa(i)+"]", of); err != nil {
			return err
		}
	}
	return nil
}

func scalar(n *yaml.Node, path string, kind reflect.Kind) error {
	is := n.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode:
		return fault(n, path, "is not a single value")
	case kind == reflect.String && is == "!!timestamp":
		n.Tag = "!!str"
		return nil
	case kind == reflect.String && is != "!!str":
		return fault(n, path, "is not text; put it in quotes")
	case kind == reflect.Bool && is != "!!bool":
		return fault(n, path, "is neither true nor false")
	case (kind == reflect.Int || kind == reflect.Int64) && !isInt(n):
		return fault(n, path, "is not a whole number")
	default:
		return nil
	}
}

func isInt(n *yaml.Node) bool {
	var i int
	return n.ShortTag() == "!!int" && n.Decode(&i) == nil
}

func timestamp(n *yaml.Node, path string) error {
	if _, err := time.Parse(time.RFC3339, n.Value); err != nil {
		return fault(n, path, "is not a time such as 2026-01-31T12:00:00Z")
	}
	n.Tag = "!!str"
	return nil
}

// fault names line, field, value and problem.
func fault(n *yaml.Node, path, problem string) error {
	if path == "" {
		path = "the document"
	}
	value := ""
	switch {
	case strings.HasPrefix(path, secretFields): // may be a secret, or part of one
	case n.Kind == yaml.MappingNode:
		value = "a set of fields "
	case n.Kind == yaml.SequenceNode:
		value = "a list "
	case len(n.Value) > shownValue:
		value = strconv.Quote(strings.ToValidUTF8(n.Value[:shownValue], "")+"…") + " "
	default:
		value = strconv.Quote(n.Value) + " "
	}
	return fmt.Errorf("line %d: %s: %s%s", n.Line, path, value, problem)
}

// fieldType returns the type of a field by its JSON name; every key of a map has one.
func fieldType(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	for f := range t.Fields() {
		if jsonName(f) == name {
			return f.Type, true
		}
	}
	return nil, false
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		names = append(names, jsonName(f))
	}
	slices.Sort(names)
	return names
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
