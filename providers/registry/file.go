package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// Entry is one configured provider.
type Entry struct {
	Name  string          // DNS label; spec.provider of a Proxy
	Type  string          // the word of a Factory
	Block json.RawMessage // the type's own configuration; empty is the zero one

	at string // where it was read, for errors
}

// The keys of a providers file. Besides them an entry has one key, its type:
//
//	providers:
//	  - name: local
//	    type: local
//	    local: {…}
const (
	keyProviders = "providers"
	keyName      = "name"
	keyType      = "type"
)

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// LoadFile reads the entries of a providers file. An error names the file, the key
// and the value, but no value inside of a block, nor that of a key it does not know.
func LoadFile(path string) ([]Entry, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own
	if err != nil {
		return nil, fmt.Errorf("providers file: %w", err)
	}
	list, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	entries := make([]Entry, 0, len(list))
	for i, raw := range list {
		entry, err := newEntry(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %s[%d]%w", path, keyProviders, i, err)
		}
		entry.at = fmt.Sprintf("%s: %s[%d]", path, keyProviders, i)
		entries = append(entries, entry)
	}
	if err := check(entries); err != nil {
		return nil, err
	}
	return entries, nil
}

// parse returns the raw entries. A file without the key is refused: it is more
// likely cut off than meant.
func parse(text []byte) ([]json.RawMessage, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, notYAML(err)
	}
	if err := oneDocument(text); err != nil {
		return nil, err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(asJSON, &top); err != nil {
		return nil, errors.New("is not a mapping with the key " + keyProviders)
	}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		if key != keyProviders {
			return nil, fmt.Errorf("unknown key %q, want %s", key, keyProviders)
		}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(top[keyProviders], &list); err != nil || list == nil {
		return nil, fmt.Errorf("%s: is missing or not a list", keyProviders)
	}
	return list, nil
}

// oneDocument refuses a second document, which the parser would read past.
func oneDocument(text []byte) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var document yamlv3.Node
	for i := 0; ; i++ {
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return notYAML(err)
		case i > 0:
			return fmt.Errorf("line %d: a second YAML document, want one", document.Line)
		}
	}
}

// newEntry reads one entry. Its errors go on after "providers[i]".
func newEntry(raw json.RawMessage) (Entry, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil || keys == nil {
		return Entry{}, errors.New(": is not a mapping")
	}
	var entry Entry
	for _, field := range []struct {
		key string
		to  *string
	}{{keyName, &entry.Name}, {keyType, &entry.Type}} {
		if err := json.Unmarshal(keys[field.key], field.to); err != nil {
			return Entry{}, fmt.Errorf(".%s: %q is missing or not a string", field.key, keys[field.key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if key != keyName && key != keyType && key != entry.Type {
			return Entry{}, fmt.Errorf(": unknown key %q in %q, want %s, %s and a block named like the type, %q",
				key, entry.Name, keyName, keyType, entry.Type)
		}
	}
	entry.Block = keys[entry.Type]
	return entry, nil
}

// check returns an error about a wrong name or one that two entries have.
func check(entries []Entry) error {
	first := map[string]string{}
	for i, e := range entries {
		if !isName(e.Name) {
			return fmt.Errorf("%s.%s: %s", e.place(i), keyName, badName(e.Name))
		}
		if at, taken := first[e.Name]; taken {
			return fmt.Errorf("%s.%s: %q is also the name of %s", e.place(i), keyName, e.Name, at)
		}
		first[e.Name] = e.place(i)
	}
	return nil
}

// place says where the entry is: in its file, or by its index where it is of none.
func (e Entry) place(i int) string {
	if e.at != "" {
		return e.at
	}
	return fmt.Sprintf("%s[%d]", keyProviders, i)
}

func isName(s string) bool { return dnsLabel.MatchString(s) }

func badName(s string) string {
	return fmt.Sprintf("%q is not a DNS label: 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit", s)
}

var (
	yamlLine = regexp.MustCompile(`line \d+`)
	yamlKey  = regexp.MustCompile(`key "[^"]*" already set in map`)
)

// notYAML keeps of a parser's error the line and a repeated key. The rest may quote
// the file, and with it a secret.
func notYAML(err error) error {
	text := "is not YAML"
	for _, part := range []*regexp.Regexp{yamlLine, yamlKey} {
		if found := part.FindString(err.Error()); found != "" {
			text += ": " + found
		}
	}
	return errors.New(text)
}
