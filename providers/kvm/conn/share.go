package conn

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

// attempt is a dial that one or more callers wait for.
type attempt struct {
	done    chan struct{}
	link    *link // or err; both are read when done is closed
	err     error
	waiting int // under the Host's lock
	cancel  context.CancelFunc
}

// acquire returns the shared link with the call counted, dialled where there is none.
func (h *Host) acquire(ctx context.Context) (*link, error) {
	h.mu.Lock()
	if err := h.refuse(ctx); err != nil {
		h.mu.Unlock()
		return nil, err
	}
	lost := h.dropEnded()
	if l := h.current; l != nil {
		l.calls++
		h.mu.Unlock()
		return l, nil
	}
	a, shared := h.dialling, h.dialling != nil
	if !shared {
		a = h.start(ctx)
		h.dialling = a
	}
	a.waiting++
	h.mu.Unlock()
	if lost != nil {
		providers.Logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "connection to the host was lost",
			slog.String("host", h.config.Host), slog.Any("error", lost.cause))
	}
	return h.await(ctx, a, shared)
}

// acquireOwn returns a new link that nobody shares, with the call counted.
func (h *Host) acquireOwn(ctx context.Context) (*link, error) {
	h.mu.Lock()
	if err := h.refuse(ctx); err != nil {
		h.mu.Unlock()
		return nil, err
	}
	a := h.start(ctx)
	a.waiting++
	h.mu.Unlock()
	return h.await(ctx, a, false)
}

// refuse says why no call begins. The caller holds the lock.
func (h *Host) refuse(ctx context.Context) error {
	switch {
	case h.closed:
		return h.closedError()
	case ctx.Err() != nil:
		return h.failed(ctx, StageDial, Timeout, ctx.Err())
	case h.abandoned >= h.config.MaxAbandoned:
		err := errors.New("too many calls hang though their callers have left")
		return &Error{h.config.Host, StageRPC, Overloaded, "look at libvirtd's log on the host", err}
	}
	return nil
}

// dropEnded forgets a current link that has ended, and returns it. The caller holds the lock.
func (h *Host) dropEnded() (lost *link) {
	if h.current != nil && h.current.ended() {
		lost = h.current
		delete(h.links, lost)
		h.current = nil
	}
	return lost
}

// start begins a dial that outlives the caller who began it, as long as another one waits.
// The caller holds the lock.
func (h *Host) start(ctx context.Context) *attempt {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.config.DialTimeout)
	a := &attempt{done: make(chan struct{}), cancel: cancel}
	h.attempts[a] = struct{}{}
	go func() {
		defer cancel()
		a.link, a.err = h.dial(ctx)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.arrived(a)
		close(a.done)
	}()
	return a
}

// arrived hands a link to everyone who waits, or ends it when nobody does. The caller holds
// the lock.
func (h *Host) arrived(a *attempt) {
	delete(h.attempts, a)
	shared := h.dialling == a
	if shared {
		h.dialling = nil
	}
	if a.err != nil {
		return
	}
	if h.closed || a.waiting == 0 {
		a.link.end(net.ErrClosed)
		a.link, a.err = nil, h.closedError()
		return
	}
	h.links[a.link] = struct{}{}
	a.link.calls = a.waiting
	if shared {
		h.current = a.link
	}
}

func (h *Host) closedError() error {
	return &Error{h.config.Host, StageDial, Closed, "", errors.New("the connection was closed for good")}
}

// await waits for a dial, under a span of the caller's own: it says what the call waited for.
func (h *Host) await(ctx context.Context, a *attempt, shared bool) (l *link, err error) {
	if parent := trace.SpanFromContext(ctx); parent.SpanContext().IsValid() {
		_, span := parent.TracerProvider().Tracer("providers/kvm/conn").Start(ctx, "kvm.dial",
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
				attribute.String("kvm.host", h.config.Host), attribute.Bool("kvm.dial.shared", shared)))
		defer func() { endSpan(span, err) }()
	}
	select {
	case <-a.done:
		return a.link, a.err
	case <-ctx.Done():
		h.leave(a)
		return nil, h.failed(ctx, StageDial, Timeout, ctx.Err())
	}
}

func endSpan(span trace.Span, err error) {
	if e, ok := errors.AsType[*Error](err); ok {
		span.SetAttributes(attribute.String("kvm.dial.stage", string(e.Stage)))
		span.SetStatus(codes.Error, string(e.Reason))
	} else if err != nil {
		span.SetStatus(codes.Error, "libvirt refused the connection")
	}
	span.End()
}

// leave is one caller less who waits for a dial. Without any it is given up, and the next
// caller begins another one.
func (h *Host) leave(a *attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-a.done: // it has counted this caller
		if a.link != nil {
			h.release(a.link)
		}
		return
	default:
	}
	a.waiting--
	if a.waiting == 0 {
		a.cancel()
		if h.dialling == a {
			h.dialling = nil
		}
	}
}

// release is one call less. The caller holds the lock.
func (h *Host) release(l *link) {
	l.calls--
	if l.retired && l.calls == 0 {
		l.end(errRetired)
	}
	if l.ended() {
		delete(h.links, l)
	}
}

var errRetired = errors.New("it was given up: a call on it hung, and nobody else used it")

// retire keeps new calls from a link, which ends with the last of its callers. The caller
// holds the lock.
func (h *Host) retire(l *link) {
	l.retired = true
	if h.current == l {
		h.current = nil
	}
	if l.calls == 0 {
		l.end(errRetired)
		delete(h.links, l)
	}
}

// finish ends a link that nobody shares.
func (h *Host) finish(l *link, polite bool) {
	h.mu.Lock()
	delete(h.links, l)
	h.mu.Unlock()
	l.goodbye(polite)
}
