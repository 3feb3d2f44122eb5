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

// DecodeProxies reads every Proxy of a YAML or JSON stream. Namespace is that of a
// document which names none. An error names the file, the document (from 1), the
// field and the value, but no value below spec.cloudInit.
func DecodeProxies(file string, r io.Reader, namespace string) ([]v1.Proxy, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s: has more than %d MiB", file, maxFile>>20)
	}
	nodes, err := documents(text)
	var proxies []v1.Proxy
	for i, n := range nodes {
		some, err := decodeDocument(n, namespace)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, i+1, err)
		}
		proxies = append(proxies, some...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: document %d: %w", file, len(nodes)+1, err)
	}
	if len(proxies) == 0 {
		return nil, fmt.Errorf("%s: holds no Proxy", file)
	}
	return proxies, nil
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
func decodeDocument(n *yaml.Node, namespace string) (proxies []v1.Proxy, _ error) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Value != "items" ||
		n.Content[1].Kind != yaml.SequenceNode {
		p, err := decodeProxy(n, namespace)
		if p == nil || err != nil {
			return nil, err
		}
		return []v1.Proxy{*p}, nil
	}
	for i, item := range n.Content[1].Content {
		p, err := decodeProxy(item, namespace)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		if p != nil {
			proxies = append(proxies, *p)
		}
	}
	return proxies, nil
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
