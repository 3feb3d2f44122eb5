package server

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent names the trace that a client is in.
const traceparent = "Traceparent"

// noRoute is what a path that leads nowhere is called.
const noRoute = "/…"

// trace begins a trace for each request that changes something. Crawlers, supervisors
// and whoever waits ask again and again: what only reads joins the trace that it names,
// and begins none. A path is anybody's text, and may hold what belongs into a body: only
// the route is told. It is no handler around the server, since net/http closes the
// connection of a body that is too large only by its own writer.
func (s *Server) trace(next echo.HandlerFunc) echo.HandlerFunc {
	tracer := s.traces.Tracer("github.com/egressfleet/egressfleet/api/server")
	return func(c echo.Context) error {
		r := c.Request()
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		joins := r.Header.Get(traceparent) != "" || trace.SpanContextFromContext(r.Context()).IsValid()
		if reads && !joins { // as most requests are
			return next(c)
		}
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		if reads && !trace.SpanContextFromContext(ctx).IsValid() {
			return next(c)
		}
		method, route := cut(r.Method, shownValue), cmp.Or(c.Path(), noRoute)
		ctx, span := tracer.Start(ctx, method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route)))
		defer span.End()
		for _, a := range subject(c) {
			span.SetAttributes(attribute.String("proxy."+a.Key, a.Value.String()))
		}
		c.SetRequest(r.WithContext(ctx))
		err := next(c)
		status := c.Response().Status
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		return err
	}
}
