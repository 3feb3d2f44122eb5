//go:build tools

package traces

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// jaegerTrace is a trace as Jaeger's API tells it.
type jaegerTrace struct {
	Spans []jaegerSpan `json:"spans"`
}

type jaegerSpan struct {
	TraceID       string `json:"traceID"`
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

func (s jaegerSpan) parent() string {
	if len(s.References) == 0 {
		return ""
	}
	return s.References[0].SpanID
}

func (s jaegerSpan) tag(key string) string {
	for _, tag := range s.Tags {
		if tag.Key == key {
			return fmt.Sprint(tag.Value)
		}
	}
	return ""
}

// traces returns what Jaeger has that has a span of these tags, and the text of it.
func (w *world) traces(tags map[string]string) (found []jaegerTrace, raw string) {
	w.t.Helper()
	wanted, err := json.Marshal(tags)
	require.NoError(w.t, err)
	query := url.Values{"service": {"egressfleet"}, "limit": {"1000"}, "lookback": {"1h"}}
	if len(tags) > 0 {
		query.Set("tags", string(wanted))
	}
	status, raw := w.ask(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/api/traces?%s", w.query, query.Encode()), "")
	require.Equal(w.t, http.StatusOK, status, raw)
	var answer struct {
		Data []jaegerTrace `json:"data"`
	}
	require.NoError(w.t, json.Unmarshal([]byte(raw), &answer))
	return answer.Data, raw
}

// roots are the spans whose parent Jaeger does not have.
func (t jaegerTrace) roots() (roots []jaegerSpan) {
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

// tree is a trace by its names, of which the same below the same is told once: how
// often a backend is asked depends on how long it takes.
func (t jaegerTrace) tree() string {
	var b strings.Builder
	branch(&b, t.Spans, t.roots(), "")
	return b.String()
}

func branch(b *strings.Builder, all, level []jaegerSpan, indent string) {
	byName := map[string][]jaegerSpan{}
	for _, span := range level {
		name := span.OperationName
		if result := span.tag("provider.result"); result != "" {
			name += " [" + result + "]"
		}
		byName[name] = append(byName[name], span)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		b.WriteString(indent + name + "\n")
		var below []jaegerSpan
		for _, span := range all {
			if slices.ContainsFunc(byName[name], func(p jaegerSpan) bool { return p.SpanID == span.parent() }) {
				below = append(below, span)
			}
		}
		branch(b, all, below, indent+"  ")
	}
}

// above are the names from a span up to its root.
func (t jaegerTrace) above(span jaegerSpan) (names []string) {
	names = []string{span.OperationName}
	for _, p := range t.Spans {
		if p.SpanID == span.parent() {
			return append(names, t.above(p)...)
		}
	}
	return names
}
