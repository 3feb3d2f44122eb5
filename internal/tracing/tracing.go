// Package tracing joins what a process does to traces, where the standard OTEL_*
// variables name somebody who takes them; without them it does nothing at all. It
// imports OpenTelemetry and the Temporal SDK, and knows nothing of the fleet. Start
// reading at Open; docs/tracing.md says what a trace looks like.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	// serviceName is what the process is called, where OTEL_SERVICE_NAME says nothing.
	serviceName = "egressfleet"
	// flushWithin bounds the last export: a collector that is away holds up no end.
	flushWithin = 5 * time.Second
	scope       = "github.com/egressfleet/egressfleet"
)

// Traces are where the spans of a process go. A nil one is good and makes none.
type Traces struct{ provider *sdktrace.TracerProvider }

// Options are what Open is given.
type Options struct {
	Getenv  func(string) string // the OTEL_* variables; required
	Version string
	Log     *slog.Logger // required; learns of exports that fail
}

// Open returns nil where no variable asks for traces. Otherwise exporter, sampler,
// limits and resource are what the OTEL_* variables say, by the SDK's own rules. An
// error names the value that is wrong. It dials nobody.
func Open(ctx context.Context, o Options) (*Traces, error) {
	if !Wanted(o.Getenv) {
		return nil, nil //nolint:nilnil // no traces, and nothing wrong
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%q, OTEL_EXPORTER_OTLP_PROTOCOL=%q: %w",
			o.Getenv("OTEL_TRACES_EXPORTER"), o.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		o.Log.Warn("spans were not exported", slog.String("error", err.Error()))
	}))
	return New(ctx, o.Version, sdktrace.WithBatcher(exporter))
}

// New returns traces that go where the options say.
func New(ctx context.Context, version string, opts ...sdktrace.TracerProviderOption) (*Traces, error) {
	// The later one wins: the variables are stronger than we are.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", serviceName),
			attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return &Traces{sdktrace.NewTracerProvider(append(opts, sdktrace.WithResource(about))...)}, nil
}

// Wanted reports whether the variables ask for traces: an exporter or an endpoint is
// named, and nothing says no.
func Wanted(getenv func(string) string) bool {
	exporter := getenv("OTEL_TRACES_EXPORTER")
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none" {
		return false
	}
	return exporter != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Requests makes the spans of what somebody asks for, which begin a trace.
func (t *Traces) Requests() trace.TracerProvider {
	if t == nil {
		return noop.NewTracerProvider()
	}
	return t.provider
}

// Work makes the spans of what is done for a request: below another one, and none
// where there is nothing to be below. What runs by itself has no span, so.
func (t *Traces) Work() trace.TracerProvider {
	if t == nil {
		return noop.NewTracerProvider()
	}
	return below{TracerProvider: t.provider}
}

// Close exports what is left, for seconds at most.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// below is a tracer provider whose spans have a parent.
type below struct{ trace.TracerProvider }

// Tracer returns a tracer that begins no trace.
func (b below) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return child{b.TracerProvider.Tracer(name, opts...)}
}

type child struct{ trace.Tracer }

// Start is the tracer's below a span, and changes nothing without one.
func (c child) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, noop.Span{}
	}
	return c.Tracer.Start(ctx, name, opts...)
}
