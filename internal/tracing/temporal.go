package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

const (
	runWorkflow = "RunWorkflow"
	// join begins the names of what is no span of its own, but stands for one elsewhere.
	join = "join"
)

// TemporalOptions say what of the fleet the interceptors have to know.
type TemporalOptions struct {
	// Expected reports whether an error is an answer rather than a failure.
	Expected func(error) bool
	// Background are the activities that have no spans: those that watch for months.
	Background []string
}

// Interceptors return what joins clients, workflows and activities to a trace: one
// for the client's options, which the SDK also gives to its workers, and one for the
// worker's. They put a header into what a workflow is told and asks for, and change
// no command. Both are nil without traces.
func (t *Traces) Interceptors(o TemporalOptions) (interceptor.ClientInterceptor, interceptor.WorkerInterceptor, error) {
	if t == nil {
		return nil, nil, nil
	}
	made, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
		Tracer:               t.Work().Tracer(scope),
		DisableQueryTracing:  true,
		DisableSignalTracing: true, // sweeps send them all the time
		DisableBaggage:       true, // it is anybody's text
		// A header that somebody wrote by hand must not stop a workflow.
		AllowInvalidParentSpans: true,
		TextMapPropagator:       propagation.TraceContext{},
		SpanStarter:             starter(o.Expected),
	})
	if err != nil {
		return nil, nil, err
	}
	tracer := tracer{made}
	return interceptor.NewTracingInterceptor(tracer), &causes{tracer: made, options: o}, nil
}

// starter begins spans that tell of errors by their class.
func starter(
	expected func(error) bool,
) func(context.Context, trace.Tracer, string, ...trace.SpanStartOption) trace.Span {
	return func(ctx context.Context, t trace.Tracer, name string, opts ...trace.SpanStartOption) trace.Span {
		if name == join+":" {
			return trace.SpanFromContext(ctx)
		}
		_, span := t.Start(ctx, name, opts...)
		return &classed{Span: span, expected: expected}
	}
}

// tracer is Temporal's own, but for the run of a workflow, which lasts for months: its
// span would never be exported, and another worker would begin another one.
type tracer struct{ interceptor.Tracer }

// StartSpan stands for the span that caused a workflow in the place of its run.
func (t tracer) StartSpan(o *interceptor.TracerStartSpanOptions) (interceptor.TracerSpan, error) {
	if o.Operation == runWorkflow {
		return t.Tracer.StartSpan(&interceptor.TracerStartSpanOptions{Operation: join, Parent: o.Parent})
	}
	return t.Tracer.StartSpan(o)
}

// GetLogger names trace and span as every line of ours does.
func (t tracer) GetLogger(l log.Logger, ref interceptor.TracerSpanRef) log.Logger {
	span, ok := ref.(trace.Span)
	if !ok || !span.SpanContext().IsValid() {
		return l
	}
	sc := span.SpanContext()
	return log.With(l, "traceID", sc.TraceID().String(), "spanID", sc.SpanID().String())
}

// classed is a span that says the class of an error and never its text, which may
// name a value of the request. What is an answer leaves its status alone.
type classed struct {
	trace.Span
	expected func(error) bool
	answered bool
}

// RecordError notes the class.
func (c *classed) RecordError(err error, _ ...trace.EventOption) {
	if err == nil {
		return
	}
	c.answered = c.expected != nil && c.expected(err)
	c.SetAttributes(attribute.String("error.type", typeOf(err)))
}

// SetStatus leaves the text out.
func (c *classed) SetStatus(code codes.Code, _ string) {
	if code == codes.Error && c.answered {
		return
	}
	c.Span.SetStatus(code, "")
}

// typeOf is the class of an error on Temporal's wire, or what kind of error it is.
func typeOf(err error) string {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() != "" {
		return app.Type()
	}
	switch {
	case temporal.IsCanceledError(err) || errors.Is(err, context.Canceled):
		return "canceled"
	case temporal.IsTimeoutError(err) || errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	default:
		return "other"
	}
}
