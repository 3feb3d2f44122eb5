package server

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/discovery"
)

// wholeQueries are the queries that ask for the whole list, as clients write them.
var wholeQueries = func() map[string]discovery.Format {
	queries := map[string]discovery.Format{"": discovery.JSON}
	for _, format := range discovery.Formats() {
		queries["format="+string(format)] = format
	}
	return queries
}()

// handOut answers what crawlers ask all the time, for the whole list, and reports whether
// it did. The route of discovery gives the same answer, and takes longer than everything
// else that a request needs. Whatever is to be refused, filtered, logged or traced, or is
// no more true for sure, is left to the route.
func (s *Server) handOut(w http.ResponseWriter, r *http.Request) bool {
	format, whole := wholeList(r)
	if !whole || s.log.Enabled(r.Context(), slog.LevelDebug) || trace.SpanContextFromContext(r.Context()).IsValid() {
		return false
	}
	last, age, stale, err := s.snapshot.current()
	if err != nil || stale {
		return false
	}
	document, err := last.usable[format]()
	if err != nil || !s.seesAll(r) { // the token last: it may use up a request
		return false
	}
	setUsual(w.Header())
	answer := discoveryResponse{document: document, age: age, gathers: gathersOf(r.Context())}
	if known := r.Header[ifNoneMatch]; len(known) == 1 {
		answer.known = &known[0]
	}
	// An error means that the client went away, which nobody else is told either.
	_ = answer.VisitGetDiscoveryResponse(w)
	return true
}

// wholeList decides whether a request is for nothing but the list in a format, at once.
func wholeList(r *http.Request) (discovery.Format, bool) {
	if r.Method != http.MethodGet || r.URL.Path != discoveryPath || r.URL.RawPath != "" || r.ContentLength != 0 {
		return "", false
	}
	if r.Header[traceparent] != nil || checkHeaders(r.Header) != nil {
		return "", false
	}
	format, whole := wholeQueries[r.URL.RawQuery]
	return format, whole
}

// seesAll decides whether who asks may see every proxy. Where that takes an allowance, it
// is used up only if so.
func (s *Server) seesAll(r *http.Request) bool {
	if s.keys == nil {
		return ofThisMachine(r) == nil
	}
	shown := r.Header[echo.HeaderAuthorization]
	if len(shown) != 1 {
		return false
	}
	token, bearer := strings.CutPrefix(shown[0], "Bearer ")
	if token = strings.TrimSpace(token); !bearer || token == "" {
		return false
	}
	grant := s.keys.Find(token)
	return grant != nil && grant.May(access.ScopeDiscovery) && !grant.Restricted() && grant.Take(s.clock.Now()) == 0
}
