package jaeger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const route = "/v1/namespaces/:namespace/proxies/:name"

// creating is the chain from a create up to the request.
var creating = []string{
	"provider.create", "RunActivity:CreateInstance", "StartActivity:CreateInstance", "UpdateWithStartWorkflow:apply",
	"PUT " + route,
}

// Trace is one as Jaeger's API tells it.
type Trace struct {
	Spans []Span `json:"spans"`
}

// Span is one of a trace; one whose parent Jaeger does not have is a root.
type Span struct {
	SpanID        string `json:"spanID"`
	OperationName string `json:"operationName"`
	References    []struct {
		SpanID string `json:"spanID"`
	} `json:"references"`
	Tags []struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	} `json:"tags"`
}

func (s Span) parent() string {
	if len(s.References) == 0 {
		return ""
	}
	return s.References[0].SpanID
}

func (s Span) tag(key string) string {
	for _, tag := range s.Tags {
		if tag.Key == key {
			return fmt.Sprint(tag.Value)
		}
	}
	return ""
}

// Roots are the spans whose parent Jaeger does not have.
func (t Trace) Roots() (roots []Span) {
	has := map[string]bool{}
	for _, span := range t.Spans {
		has[span.SpanID] = true
	}
	for _, span := range t.Spans {
		if !has[span.parent()] {
			roots = append(roots, span)
		}
	}
	return roots
}

// Created reports whether there is a create with the parents that it should have, up to
// the request, and a call of the backend below it, unless that is empty.
func (t Trace) Created(backend string) bool {
	chain := creating
	if backend != "" {
		chain = append([]string{backend}, creating...)
	}
	return slices.ContainsFunc(t.Spans, func(s Span) bool { return slices.Equal(t.above(s), chain) })
}

// above are the names from a span up to its root.
func (t Trace) above(span Span) (names []string) {
	names = []string{span.OperationName}
	for _, p := range t.Spans {
		if p.SpanID == span.parent() {
			return append(names, t.above(p)...)
		}
	}
	return names
}

// Tree is a trace by its names, of which the same below the same is told once: how
// often a backend is asked depends on how long it takes.
func (t Trace) Tree() string {
	var b strings.Builder
	branch(&b, t.Spans, t.Roots(), "")
	return b.String()
}

func branch(b *strings.Builder, all, level []Span, indent string) {
	byName := map[string][]Span{}
	for _, span := range level {
		name := span.OperationName
		if result := span.tag("provider.result"); result != "" {
			name += " [" + result + "]"
		}
		byName[name] = append(byName[name], span)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		b.WriteString(indent + name + "\n")
		var below []Span
		for _, span := range all {
			if slices.ContainsFunc(byName[name], func(p Span) bool { return p.SpanID == span.parent() }) {
				below = append(below, span)
			}
		}
		branch(b, all, below, indent+"  ")
	}
}
