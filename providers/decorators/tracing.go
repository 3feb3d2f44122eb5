package decorators

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

// The attributes of a provider's span.
const (
	attrName   = attribute.Key("provider.name")
	attrID     = attribute.Key("provider.id")
	attrResult = attribute.Key("provider.result") // the class, or "ok"
)

var (
	_ providers.Provider    = (*traced)(nil)
	_ providers.Unwrapper   = (*traced)(nil)
	_ providers.Inventorier = (*tracedInventory)(nil)
	_ providers.Preparer    = (*tracedPreparer)(nil)
)

type traced struct {
	providers.Provider
	name   string
	tracer trace.Tracer
}

// tracedInventory is traced over a provider that has an inventory.
type tracedInventory struct {
	*traced
	inner providers.Inventorier
}

// tracedPreparer is traced over a provider that prepares. It is a layer of its own, so
// that a provider may have an inventory or not.
type tracedPreparer struct {
	providers.Provider
	traced *traced
	inner  providers.Preparer
}

// WithTracing opens one client span for each call: provider.create, provider.get,
// provider.delete, provider.list (an inventory is a list), provider.prepare. Backend calls made with
// the context become its children. NotFound leaves the span's status unset, since
// polling until it comes is expected. The logger of the call's context names trace
// and span.
func WithTracing(p providers.Provider, name string, tracer trace.Tracer) providers.Provider {
	t := &traced{Provider: p, name: name, tracer: tracer}
	var out providers.Provider = t
	if inner, ok := providers.As[providers.Inventorier](p); ok {
		out = &tracedInventory{traced: t, inner: inner}
	}
	if inner, ok := providers.As[providers.Preparer](p); ok {
		out = &tracedPreparer{Provider: out, traced: t, inner: inner}
	}
	return out
}

// Unwrap returns the traced provider.
func (t *tracedPreparer) Unwrap() providers.Provider { return t.Provider }

// Prepare is the provider's, in a span.
func (t *tracedPreparer) Prepare(ctx context.Context, req providers.CreateRequest) error {
	_, err := inSpan(ctx, t.traced, call{op: providers.OpPrepare}, func(ctx context.Context) (any, error) {
		return nil, t.inner.Prepare(ctx, req)
	})
	return err
}

// Unwrap returns the provider without tracing.
func (t *traced) Unwrap() providers.Provider { return t.Provider }

// Create is the provider's, in a span.
func (t *traced) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	return inSpan(ctx, t, call{op: providers.OpCreate}, func(ctx context.Context) (string, error) {
		id, err := t.Provider.Create(ctx, req)
		trace.SpanFromContext(ctx).SetAttributes(attrID.String(id))
		return id, err
	})
}

// Get is the provider's, in a span.
func (t *traced) Get(ctx context.Context, id string) (*providers.Instance, error) {
	return inSpan(ctx, t, call{providers.OpGet, id}, func(ctx context.Context) (*providers.Instance, error) {
		return t.Provider.Get(ctx, id)
	})
}

// Delete is the provider's, in a span.
func (t *traced) Delete(ctx context.Context, id string) error {
	_, err := inSpan(ctx, t, call{providers.OpDelete, id}, func(ctx context.Context) (any, error) {
		return nil, t.Provider.Delete(ctx, id)
	})
	return err
}

// ListByTag is the provider's, in a span.
func (t *traced) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	return inSpan(ctx, t, call{op: providers.OpList}, t.Provider.ListByTag)
}

// Inventory is the provider's, in a span of the list operation.
func (t *tracedInventory) Inventory(ctx context.Context) (providers.Inventory, error) {
	return inSpan(ctx, t.traced, call{op: providers.OpList}, t.inner.Inventory)
}

func inSpan[T any](ctx context.Context, t *traced, c call, run func(context.Context) (T, error)) (T, error) {
	ctx, span := t.tracer.Start(ctx, "provider."+c.op, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attrName.String(t.name), attrID.String(c.id)))
	defer span.End()
	out, err := run(withTrace(ctx, span.SpanContext()))
	span.SetAttributes(attrResult.String(result(err)))
	if err != nil && providers.ClassOf(err) != providers.ErrNotFound {
		span.SetStatus(codes.Error, text(err))
	}
	return out, err
}

// withTrace lets the log lines of a call name its trace; without tracing there is
// nothing to name.
func withTrace(ctx context.Context, sc trace.SpanContext) context.Context {
	if !sc.IsValid() {
		return ctx
	}
	return providers.WithLogger(ctx, providers.Logger(ctx).With(
		slog.String("traceID", sc.TraceID().String()), slog.String("spanID", sc.SpanID().String())))
}

// text returns what a span may say about an error: the text of our own *Error, which
// holds no secret by contract, and of any other error only the class.
func text(err error) string {
	if e, ok := errors.AsType[*providers.Error](err); ok {
		return e.Error()
	}
	return result(err)
}
