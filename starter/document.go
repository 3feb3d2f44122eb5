package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// maxFile bounds what is read of one file: the API takes no more for one Proxy.
const maxFile = 16 << 20

// placed is a Proxy and where it was read: file, document (from 1) and item.
type placed struct {
	v1.Proxy
	place string
}

// DecodeProxies reads every Proxy of a YAML or JSON stream. Namespace is that of a
// document which names none. An error names the file, the document (from 1), the
// field and the value, but no value below spec.cloudInit.
func DecodeProxies(file string, r io.Reader, namespace string) ([]v1.Proxy, error) {
	all, err := decodePlaced(file, r, namespace)
	if err == nil {
		err = checkOnce(all)
	}
	if err != nil {
		return nil, err
	}
	return proxiesOf(all), nil
}

func decodePlaced(file string, r io.Reader, namespace string) ([]placed, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s: has more than %d MiB", file, maxFile>>20)
	}
	nodes, err := documents(text)
	var all []placed
	for i, n := range nodes {
		some, err := decodeDocument(n, fmt.Sprintf("%s: document %d", file, i+1), namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: document %d: %w", file, len(nodes)+1, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: holds no Proxy", file)
	}
	return all, nil
}

func proxiesOf(all []placed) []v1.Proxy {
	proxies := make([]v1.Proxy, 0, len(all))
	for _, p := range all {
		proxies = append(proxies, p.Proxy)
	}
	return proxies
}

// checkOnce refuses two Proxies of one name: which of them counts would be a guess.
func checkOnce(all []placed) error {
	seen := map[[2]string]string{}
	for _, p := range all {
		name := [2]string{p.Metadata.Namespace, p.Metadata.Name}
		if first, twice := seen[name]; twice {
			return fmt.Errorf("%s: metadata.name: %q of namespace %q is there twice; first in %s",
				p.place, p.Metadata.Name, p.Metadata.Namespace, first)
		}
		seen[name] = p.place
	}
	return nil
}

// documents splits a stream. On an error it returns the documents before it.
func documents(text []byte) (nodes []*yaml.Node, atEnd error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		text, atEnd = jsonAsYAML(text)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		n := new(yaml.Node)
		switch err := decoder.Decode(n); {
		case errors.Is(err, io.EOF):
			return nodes, atEnd
		case err != nil:
			return nodes, syntaxFault(err)
		}
		nodes = append(nodes, n.Content[0])
	}
}

// jsonAsYAML writes a stream of JSON values so that a YAML parser reads it: JSON may
// be indented with tabs and escape what YAML does not. On an error it returns the
// values before it.
func jsonAsYAML(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out bytes.Buffer
	for {
		var value any
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return out.Bytes(), nil
		case err != nil:
			return out.Bytes(), fmt.Errorf("is no JSON: %w", err)
		}
		out.WriteString("---\n")
		if err := json.NewEncoder(&out).Encode(value); err != nil {
			return nil, err
		}
	}
}

// syntaxFault keeps the line and the kind of a syntax error. What a parser quotes
// of the text may be a secret.
func syntaxFault(err error) error {
	text, _, _ := strings.Cut(err.Error(), "'")
	return errors.New("is no YAML: " + strings.TrimPrefix(strings.TrimSpace(text), "yaml: "))
}

// decodeDocument reads a Proxy, or a list of them as "get -o json" prints it:
// {"items": […]}.
func decodeDocument(n *yaml.Node, place, namespace string) (all []placed, _ error) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Value != "items" ||
		n.Content[1].Kind != yaml.SequenceNode {
		return decodeAt(n, place, namespace)
	}
	for i, item := range n.Content[1].Content {
		one, err := decodeAt(item, fmt.Sprintf("%s: items[%d]", place, i), namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// decodeAt returns one Proxy, or none for an empty document.
func decodeAt(n *yaml.Node, place, namespace string) ([]placed, error) {
	p, err := decodeProxy(n, namespace)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", place, err)
	case p == nil:
		return nil, nil
	default:
		return []placed{{*p, place}}, nil
	}
}

// decodeProxy returns nil for an empty document.
func decodeProxy(n *yaml.Node, namespace string) (*v1.Proxy, error) {
	if n.Tag == "!!null" {
		return nil, nil //nolint:nilnil // no Proxy is no error
	}
	var p v1.Proxy
	if err := checkShape(n, &p); err != nil {
		return nil, err
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, syntaxFault(err)
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(asJSON, &p); err != nil {
		return nil, errors.New("is no Proxy") // checkShape has said why; the rest may quote a secret
	}
	if p.Metadata.Namespace == "" {
		p.Metadata.Namespace = namespace
	}
	return &p, errors.Join(p.Metadata.Validate(), p.Spec.Validate())
}
