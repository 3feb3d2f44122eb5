package fake

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

// request is one call of the backend.
type request struct {
	what     string // "instances.get"
	location string
	name     string
	bytes    int // of cloud-init
}

// call asks the backend, as the profile says: under a deadline of its own, in a child
// span, with the credential of this moment.
func call[T any](ctx context.Context, p *Provider, r request, act func() (T, error)) (T, error) {
	if p.profile.Timeouts == providers.TimeoutsPerCall {
		bounded, cancel := context.WithTimeout(ctx, p.callTimeout)
		defer cancel()
		ctx = bounded
	}
	ctx, end := p.span(ctx, r)
	out, err := ask(ctx, p, r, act)
	end(err)
	p.logCall(ctx, r, err)
	return out, err
}

func ask[T any](ctx context.Context, p *Provider, r request, act func() (T, error)) (T, error) {
	var none T
	token, err := p.credential(ctx)
	if err != nil {
		return none, err
	}
	if err := p.reach(ctx, r, token); err != nil {
		return none, err
	}
	out, err := locked(p.backend, act)
	if stop := p.stopAfter(r.what); stop != nil {
		return none, stop()
	}
	return out, err
}

func locked[T any](b *backend, act func() (T, error)) (T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return act()
}

// reach ends when the backend has the call, or cannot have it.
func (b *backend) reach(ctx context.Context, r request, token string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	stalled := b.stalled
	b.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.cut[r.location]:
		return errUnreachable(r.location)
	case b.denied, b.token != "" && b.token != token:
		return errDenied()
	case b.confused:
		return errOther(http.StatusNotFound)
	}
	return nil
}

// logOutcome writes the one line of an operation.
func (p *Provider) logOutcome(ctx context.Context, at target, err error) {
	if p.profile.Logging == providers.LoggingNone {
		return
	}
	attrs := []slog.Attr{slog.String("provider", p.name), slog.String("id", at.id)}
	if err != nil {
		attrs = append(attrs, slog.String("class", string(providers.ClassOf(err))), slog.String("error", err.Error()))
	}
	providers.Logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "fake "+at.op, attrs...)
}

// logCall writes what a backend call was about, and how it went: of a failed one the
// outcome, in all tiers the detail, and the bare wire.
func (p *Provider) logCall(ctx context.Context, r request, err error) {
	logger := providers.Logger(ctx)
	if err != nil && p.profile.Logging != providers.LoggingNone {
		logger.LogAttrs(ctx, providers.LevelOutcome, "fake call failed", slog.String("call", r.what),
			slog.String("location", r.location), slog.String("error", err.Error()))
	}
	if p.profile.Logging == providers.LoggingTiered {
		logger.LogAttrs(ctx, providers.LevelDetail, "fake call", slog.String("call", r.what),
			slog.String("name", r.name), slog.Int("cloudInitBytes", r.bytes))
		logger.LogAttrs(ctx, providers.LevelWire, "fake wire", slog.String("call", r.what))
	}
}

// span opens the child span of a call, in the name that its kind gives it. Without a
// parent there is none: what no caller asked for is no trace.
func (p *Provider) span(ctx context.Context, r request) (context.Context, func(error)) {
	parent := trace.SpanFromContext(ctx)
	if p.profile.ChildSpans == providers.SpansNone || !parent.SpanContext().IsValid() {
		return ctx, func(error) {}
	}
	name := map[providers.ChildSpans]string{
		providers.SpansSDK: "memory.v1/" + r.what, providers.SpansTransport: "HTTP POST",
		providers.SpansDecorator: "fake." + r.what,
	}[p.profile.ChildSpans]
	tracer := parent.TracerProvider().Tracer("testsuite/fake")
	ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	return ctx, func(err error) {
		if said, ok := errors.AsType[*BackendError](err); ok {
			span.SetStatus(codes.Error, said.Code)
		}
		span.End()
	}
}
