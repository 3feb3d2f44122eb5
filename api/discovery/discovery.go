// Package discovery renders the list of proxies that clients may use now: one
// list, many formats. It imports only api/v1 and knows neither HTTP nor where the
// list comes from. Start reading at Render; a new format is one more row of
// renderers in formats.go.
package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Format is a way to write the list, as clients name it in ?format=.
type Format string

// Document is the list in one format.
type Document struct {
	ContentType string
	Body        []byte
	// ETag is weak and quoted. Lists that differ only in GeneratedAt have the same.
	ETag string
}

type renderer struct {
	contentType string
	// body returns the document, and the part of it in which two lists differ that are
	// not the same: without its times.
	body func(v1.Discovery) (body, timeless []byte, err error)
}

// always is a renderer of what has no times in it.
func always(render func(v1.Discovery) ([]byte, error)) func(v1.Discovery) (body, timeless []byte, err error) {
	return func(list v1.Discovery) (body, timeless []byte, err error) {
		body, err = render(list)
		return body, body, err
	}
}

// etagBytes of a SHA-256 are enough to tell two lists of one server apart.
const etagBytes = 16

// formats are sorted once: every request asks for them.
var formats = slices.Sorted(maps.Keys(renderers))

// Formats lists every format, sorted.
func Formats() []Format { return slices.Clone(formats) }

// Render writes the list in a format. An error means that there is no such format,
// or a time that JSON cannot hold.
func Render(format Format, list v1.Discovery) (Document, error) {
	r, known := renderers[format]
	if !known {
		return Document{}, fmt.Errorf("discovery: no format %q", format)
	}
	body, timeless, err := r.body(list)
	if err != nil {
		return Document{}, fmt.Errorf("discovery as %s: %w", format, err)
	}
	sum := sha256.Sum256(timeless)
	return Document{r.contentType, body, `W/"` + hex.EncodeToString(sum[:etagBytes]) + `"`}, nil
}

// Endpoints returns the proxies that can be reached, also those that a probe speaks
// against, sorted by namespace and name. It is never nil, because "none" is an answer.
func Endpoints(proxies []v1.Proxy) []v1.Endpoint {
	endpoints := make([]v1.Endpoint, 0, len(proxies))
	for _, p := range proxies {
		if endpoint, reachable := v1.ReachableOf(p); reachable {
			endpoints = append(endpoints, endpoint)
		}
	}
	slices.SortFunc(endpoints, func(a, b v1.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return endpoints
}
