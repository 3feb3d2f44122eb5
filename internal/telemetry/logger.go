// Package telemetry is what a process tells about itself: its log, its metrics and
// its version. It imports libraries only and knows nothing of the fleet. Start
// reading at NewLogger and NewRegistry.
package telemetry

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes lines of JSON, or of key=value text, at
// level and above. A line whose context is in a trace names trace and span.
func NewLogger(w io.Writer, level slog.Level, json bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(joined{Handler: slog.NewJSONHandler(w, options)})
	}
	return slog.New(joined{Handler: slog.NewTextHandler(w, options)})
}

// The keys by which a line names its trace.
const traceID, spanID = "traceID", "spanID"

// joined adds the trace of a line's context, unless its logger names one already.
type joined struct {
	slog.Handler
	named bool
}

// Handle writes a line.
func (j joined) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); !j.named && sc.IsValid() {
		r.AddAttrs(slog.String(traceID, sc.TraceID().String()), slog.String(spanID, sc.SpanID().String()))
	}
	return j.Handler.Handle(ctx, r)
}

// WithAttrs knows a logger that names its trace.
func (j joined) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		j.named = j.named || a.Key == traceID
	}
	j.Handler = j.Handler.WithAttrs(attrs)
	return j
}

// WithGroup keeps what is known.
func (j joined) WithGroup(name string) slog.Handler {
	j.Handler = j.Handler.WithGroup(name)
	return j
}
