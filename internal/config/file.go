package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file lays a YAML file over the defaults. Every key must be known, once, and hold
// what its setting takes; errors name file, line and key.
func (l *layers) file(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	defer func() { _ = f.Close() }()
	decoder := yaml.NewDecoder(f)
	var doc, more yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF): // an empty file says nothing
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: holds more than one YAML document", path)
	}
	r := fileReader{path: path, layers: l, keys: map[string]bool{}}
	for _, s := range settings() {
		r.keys[s.key] = true
	}
	r.section("", doc.Content[0])
	return errors.Join(r.faults...)
}

// fileReader walks one file.
type fileReader struct {
	path   string
	layers *layers
	keys   map[string]bool
	faults []error
}

func (r *fileReader) fault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%s:%d: %s", r.path, n.Line, fmt.Sprintf(format, args...)))
}

// section reads the keys of one mapping; prefix is "" or "api.".
func (r *fileReader) section(prefix string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, "%s: %q is not a list of keys and values", where(prefix), n.Value)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		key := prefix + name.Value
		switch {
		case seen[key]:
			r.fault(name, "%s: is there twice", key)
		case r.keys[key]:
			r.value(key, value)
		case r.isSection(key):
			r.section(key+".", value)
		default:
			r.fault(name, "%s: unknown key; \"worker config\" prints all keys", key)
		}
		seen[key] = true
	}
}

// value reads one setting; a list is the same as its items with commas between.
func (r *fileReader) value(key string, n *yaml.Node) {
	text := n.Value
	switch {
	case n.Kind == yaml.SequenceNode && (key == "roles" || key == "codec.origins"):
		items := make([]string, len(n.Content))
		for i, item := range n.Content {
			items[i] = item.Value
		}
		text = strings.Join(items, ",")
	case n.Kind != yaml.ScalarNode:
		r.fault(n, "%s: is not a single value", key)
		return
	case n.Tag == "!!null": // a key without a value keeps the default
		return
	}
	r.layers.put(key, text, fmt.Sprintf("%s:%d", r.path, n.Line))
}

func (r *fileReader) isSection(key string) bool {
	for known := range r.keys {
		if strings.HasPrefix(known, key+".") {
			return true
		}
	}
	return false
}

func where(prefix string) string {
	if prefix == "" {
		return "the file"
	}
	return strings.TrimSuffix(prefix, ".")
}
