// Package conn keeps one SSH connection per host, on which libvirt's protocol is spoken. It
// knows nothing of domains and volumes. It may import the contract, go-libvirt and x/crypto/ssh.
// Start reading at Host.Do; share.go is who uses which connection, call.go a call, link.go one
// connection, dial.go how it is made, and frames.go keeps libvirt's client from its own traps.
package conn

import (
	"context"
	"net"
	"sync"

	"github.com/digitalocean/go-libvirt"
)

// Host is the way to one host. Its methods may be called concurrently.
type Host struct {
	config  Config
	dialTCP DialFunc

	mu        sync.Mutex
	current   *link    // takes new calls; nil where there is none
	dialling  *attempt // will be current; nil where nobody dials
	attempts  map[*attempt]struct{}
	links     map[*link]struct{} // all that may still be used
	abandoned int                // calls without a caller, on all of them
	closed    bool
}

// New returns a Host that has not dialled yet.
func New(config Config, options ...Option) *Host {
	h := &Host{
		config: config.withDefaults(), dialTCP: (&net.Dialer{}).DialContext,
		attempts: map[*attempt]struct{}{}, links: map[*link]struct{}{},
	}
	for _, option := range options {
		option(h)
	}
	return h
}

// Option changes a Host that is being made.
type Option func(*Host)

// WithDial replaces how TCP connections are opened.
func WithDial(dial DialFunc) Option { return func(h *Host) { h.dialTCP = dial } }

// Do runs use on the connection that all callers share; it is dialled where there is none.
//
// When ctx ends, Do returns at once and use goes on without its caller: what use writes to
// variables of the caller must not be read after an error. Call hands a result over safely.
// That disturbs no other call. Libvirt is asked whether it still answers, and if it does not
// the connection is dropped; if it does, and the call still hangs after StuckAfter, new calls
// go to a new connection, and the old one is dropped when the last of its callers has left.
//
// An error of the link is an *Error. Libvirt's own errors and those of use are passed on as
// they are; a panic of use is the caller's.
func (h *Host) Do(ctx context.Context, use func(*libvirt.Libvirt) error) error {
	l, err := h.acquire(ctx)
	if err != nil {
		return err
	}
	return h.call(ctx, l, use)
}

// Probe is Do on a connection of its own, which is closed afterwards: it says whether the
// host can be reached from nothing, and disturbs nobody.
func (h *Host) Probe(ctx context.Context, use func(*libvirt.Libvirt) error) error {
	l, err := h.acquireOwn(ctx)
	if err != nil {
		return err
	}
	defer func() { h.finish(l, ctx.Err() == nil) }()
	return h.call(ctx, l, use)
}

// Close ends all connections, every call on them with ConnectionLost, and every later one with
// Closed. It waits for libvirt's goodbye, CloseTimeout at most.
func (h *Host) Close() error {
	var leaving sync.WaitGroup
	h.mu.Lock()
	h.closed = true
	for a := range h.attempts {
		a.cancel()
	}
	for l := range h.links {
		polite := l.calls+l.abandoned == 0
		leaving.Go(func() { l.goodbye(polite) })
	}
	h.links, h.current = map[*link]struct{}{}, nil
	h.mu.Unlock()
	leaving.Wait()
	return nil
}

// Doer is the part of a Host that Call needs: its Do or its Probe.
type Doer func(ctx context.Context, use func(*libvirt.Libvirt) error) error

// Call is Do with a result: conn.Call(ctx, host.Do, func(l *libvirt.Libvirt) (T, error) …).
// The result is zero where there is an error.
func Call[T any](ctx context.Context, do Doer, use func(*libvirt.Libvirt) (T, error)) (result T, err error) {
	results := make(chan T, 1)
	err = do(ctx, func(l *libvirt.Libvirt) error {
		value, err := use(l)
		if err == nil {
			results <- value
		}
		return err
	})
	if err == nil {
		result = <-results
	}
	return result, err
}
