// Package discovery renders the list of proxies that clients may use now: one
// list, many formats. It imports only api/v1 and knows neither HTTP nor where the
// list comes from. Start reading at Render; a new format is one more row of
// renderers.
package discovery

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Format is a way to write the list, as clients name it in ?format=.
type Format string

// The formats.
const (
	JSON Format = "json" // the v1.Discovery document
	Text Format = "txt"  // one http://ip:port a line, as rotating-proxy middlewares read it
)

// Document is the list in one format.
type Document struct {
	ContentType string
	Body        []byte
	// ETag is weak and quoted. Lists that differ only in GeneratedAt have the same.
	ETag string
}

type renderer struct {
	contentType string
	body        func(v1.Discovery) ([]byte, error)
}

var renderers = map[Format]renderer{
	JSON: {"application/json", renderJSON},
	Text: {"text/plain; charset=utf-8", renderText},
}

// etagBytes of a SHA-256 are enough to tell two lists of one server apart.
const etagBytes = 16

// Formats lists every format, sorted.
func Formats() []Format { return slices.Sorted(maps.Keys(renderers)) }

// Render writes the list in a format. An error means that there is no such format,
// or a time that JSON cannot hold.
func Render(format Format, list v1.Discovery) (Document, error) {
	r, known := renderers[format]
	if !known {
		return Document{}, fmt.Errorf("discovery: no format %q", format)
	}
	body, err := r.body(list)
	if err != nil {
		return Document{}, fmt.Errorf("discovery as %s: %w", format, err)
	}
	list.GeneratedAt = time.Time{}
	timeless, err := r.body(list)
	if err != nil {
		return Document{}, fmt.Errorf("discovery as %s: %w", format, err)
	}
	sum := sha256.Sum256(timeless)
	return Document{r.contentType, body, `W/"` + hex.EncodeToString(sum[:etagBytes]) + `"`}, nil
}

// Endpoints returns the proxies that clients may use, sorted by namespace and name.
// It is never nil, because "none" is an answer.
func Endpoints(proxies []v1.Proxy) []v1.Endpoint {
	endpoints := make([]v1.Endpoint, 0, len(proxies))
	for _, p := range proxies {
		if endpoint, usable := v1.EndpointOf(p); usable {
			endpoints = append(endpoints, endpoint)
		}
	}
	slices.SortFunc(endpoints, func(a, b v1.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return endpoints
}

func renderJSON(list v1.Discovery) ([]byte, error) {
	if list.Proxies == nil {
		list.Proxies = []v1.Endpoint{} // clients range over it; null breaks some
	}
	list.GeneratedAt = list.GeneratedAt.UTC()
	var out bytes.Buffer
	err := json.NewEncoder(&out).Encode(list)
	return out.Bytes(), err
}

func renderText(list v1.Discovery) ([]byte, error) {
	var out strings.Builder
	for _, endpoint := range list.Proxies {
		out.WriteString(endpoint.URL + "\n")
	}
	return []byte(out.String()), nil
}
