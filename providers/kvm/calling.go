package kvm

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/digitalocean/go-libvirt"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

// tracerName is the scope of the child spans.
const tracerName = "github.com/egressfleet/egressfleet/providers/kvm"

// The calls with a bound of their own.
const (
	rpcStart    = "DomainCreate"
	rpcUpload   = "StorageVolUpload"
	rpcDownload = "StorageVolDownload"
)

// bounds are what the provider waits for, at most, whatever its caller's context says.
type bounds struct {
	// call is for one call: libvirt itself waits 30 s for the lock of a domain before it says
	// that it cannot have it, and that answer is worth more than a time-out.
	call time.Duration
	// start also runs QEMU, which reads its disks.
	start time.Duration
	// transfer is for a seed, a few MiB at the most.
	transfer time.Duration
	create   time.Duration // for all of a create
	check    time.Duration // for the check of one host
}

func defaultBounds() bounds {
	return bounds{
		call: 40 * time.Second, start: 90 * time.Second, transfer: 60 * time.Second,
		create: 4*time.Minute + 30*time.Second, check: 15 * time.Second,
	}
}

func (b bounds) of(rpc string) time.Duration {
	switch rpc {
	case rpcStart:
		return b.start
	case rpcUpload, rpcDownload:
		return b.transfer
	default:
		return b.call
	}
}

// rpcError says which call failed, on which host.
type rpcError struct {
	host, rpc string
	err       error
}

func (e *rpcError) Error() string { return fmt.Sprintf("host %s: %s: %v", e.host, e.rpc, e.err) }
func (e *rpcError) Unwrap() error { return e.err }

// calling returns the calls of one operation on one host. No call begins once ctx has ended,
// and each has a bound, a child span and lines of its own.
func (p *Provider) calling(ctx context.Context, h *host, do func(context.Context, func(api) error) error) calls {
	return calls{around: func(rpc string, use func(api) error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		bound := p.bounds.of(rpc)
		ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("no answer within %s", bound))
		defer cancel()
		ctx, span := startSpan(ctx, h.Name, rpc)
		defer span.End()
		began := time.Now()
		err := do(ctx, use)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
		p.tell(ctx, span, &rpcError{h.Name, rpc, err}, time.Since(began))
		if err != nil {
			return &rpcError{h.Name, rpc, err}
		}
		return nil
	}}
}

// startSpan opens a child of the operation's span; without one there is nothing to be a
// child of, and the tracer of the empty span makes none.
func startSpan(ctx context.Context, host, rpc string) (context.Context, trace.Span) {
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer(tracerName)
	return tracer.Start(ctx, "kvm."+rpc, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("kvm.host", host)))
}

// tell writes what became of a call: a failed one is an outcome, for it may be all that a
// failed operation says. The words of libvirt hold no user-data, which is in no XML.
func (p *Provider) tell(ctx context.Context, span trace.Span, called *rpcError, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("host", called.host), slog.String("rpc", called.rpc), slog.Duration("took", took),
	}
	if called.err == nil {
		p.logger(ctx).LogAttrs(ctx, providers.LevelDetail, "kvm call", attrs...)
		return
	}
	if code, _, ok := saidCode(called.err); ok {
		span.SetAttributes(attribute.Int("kvm.code", int(code)))
		attrs = append(attrs, slog.Int("code", int(code)))
		if code == libvirt.ErrNoDomain || code == libvirt.ErrNoStorageVol { // an answer, more than a failure
			p.logger(ctx).LogAttrs(ctx, providers.LevelDetail, "kvm call found nothing", attrs...)
			return
		}
	}
	span.SetStatus(codes.Error, called.rpc)
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "kvm call failed",
		append(attrs, slog.String("error", called.err.Error()))...)
}
