package providertest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// watch keeps what calls let out: log lines of every level, spans, answers.
type watch struct {
	mu    sync.Mutex
	lines bytes.Buffer
	spans []sdktrace.ReadOnlySpan
}

// logger returns a logger that keeps every line, as text and as JSON: the two quote
// and encode in different ways.
func (w *watch) logger() *slog.Logger {
	opts := &slog.HandlerOptions{Level: slog.Level(math.MinInt)}
	return slog.New(slog.NewMultiHandler(slog.NewTextHandler(w, opts), slog.NewJSONHandler(w, opts)))
}

// Write keeps a log line.
func (w *watch) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.Write(line)
}

// answer keeps what a call returned.
func (w *watch) answer(_ string, answer any, err error) {
	_, _ = fmt.Fprintf(w, "%v %+v %v %+v\n", answer, answer, err, err)
}

func (w *watch) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.String()
}

// started returns the spans so far, ended or not.
func (w *watch) started() []sdktrace.ReadOnlySpan {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sdktrace.ReadOnlySpan(nil), w.spans...)
}

// spanText is all that spans tell a backend for traces.
func spanText(spans []sdktrace.ReadOnlySpan) string {
	var out strings.Builder
	attributes := func(all []attribute.KeyValue) {
		for _, a := range all {
			fmt.Fprintf(&out, " %s=%s", a.Key, a.Value.String())
		}
	}
	for _, span := range spans {
		fmt.Fprintf(&out, "%s %s %s", span.Name(), span.Status().Description, span.SpanContext().TraceState())
		attributes(span.Attributes())
		for _, event := range span.Events() {
			fmt.Fprintf(&out, " %s", event.Name)
			attributes(event.Attributes)
		}
		for _, link := range span.Links() {
			attributes(link.Attributes)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// under returns a context whose lines and spans w keeps, without a span yet.
func (w *watch) under(ctx context.Context) context.Context {
	return context.WithValue(ctx, watchKey{}, w)
}

// caller returns a context with a span of whoever calls the provider.
func caller(ctx context.Context) (context.Context, trace.Span) {
	return tracing().Tracer("providertest").Start(ctx, "caller")
}

type watchKey struct{}

// tracing is OpenTelemetry's global provider, once a row needs it: what a provider
// takes its tracers from, if it does not use its caller's.
var tracing = sync.OnceValue(func() *sdktrace.TracerProvider {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(&strays))
	otel.SetTracerProvider(provider)
	return provider
})

// strays hands each span to the watch of its context and keeps those without one.
var strays watch

// OnStart keeps the span as it begins: one that never ends is seen, too.
func (*watch) OnStart(parent context.Context, span sdktrace.ReadWriteSpan) {
	w, ok := parent.Value(watchKey{}).(*watch)
	if !ok {
		w = &strays
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spans = append(w.spans, span)
}

// OnEnd does nothing: a span that is kept shows what was added later.
func (*watch) OnEnd(sdktrace.ReadOnlySpan) {}

// Shutdown does nothing.
func (*watch) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (*watch) ForceFlush(context.Context) error { return nil }
