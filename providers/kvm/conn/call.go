package conn

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// settle is how long a connection's ends may take to agree that it has ended, and why.
const settle = 2 * exitWait

// call is one use of a link.
type call struct {
	link   *link
	result chan outcome
	gone   chan struct{} // closed when use has returned
	left   bool          // the caller has left first; under the Host's lock
}

// outcome is what came of a use.
type outcome struct {
	err      error
	panicked any
}

// errEnded is the outcome of a use whose goroutine was ended under it.
var errEnded = errors.New("the call has ended its goroutine")

// call runs use, and lets the caller go when ctx or the link ends first.
func (h *Host) call(ctx context.Context, l *link, use func(*libvirt.Libvirt) error) error {
	c := &call{link: l, result: make(chan outcome, 1), gone: make(chan struct{})}
	go h.run(c, use)
	select {
	case o := <-c.result:
		return h.result(c, o)
	case <-ctx.Done():
	case <-l.done: // libvirt's client wakes its calls; theirs may be the better error
		select {
		case o := <-c.result:
			return h.result(c, o)
		case <-ctx.Done():
		case <-time.After(settle):
		}
	}
	if o, returned := h.abandon(c); returned {
		return h.result(c, o)
	}
	if ctx.Err() != nil {
		return h.failed(ctx, StageRPC, Timeout, ctx.Err())
	}
	return h.lost(l.cause)
}

func (h *Host) run(c *call, use func(*libvirt.Libvirt) error) {
	o := outcome{err: errEnded}
	defer func() {
		o.panicked = recover()
		c.result <- o
		h.returned(c)
	}()
	o.err = use(c.link.libvirt)
}

// returned takes a call that nobody waited for from the count.
func (h *Host) returned(c *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(c.gone)
	if c.left {
		c.link.abandoned--
		h.abandoned--
	}
}

// result is the end of a call whose caller is still there.
func (h *Host) result(c *call, o outcome) error {
	h.mu.Lock()
	h.release(c.link)
	h.mu.Unlock()
	if o.panicked != nil {
		panic(o.panicked)
	}
	return h.translate(c.link, o.err)
}

// translate names a loss where libvirt's client gives what it happened to notice.
func (h *Host) translate(l *link, err error) error {
	over := l.ended()
	switch {
	case err == nil, answered(err):
		return err
	case errors.Is(err, errLost), errors.Is(err, libvirt.ErrInterrupted), over && errors.Is(err, syscall.EINVAL):
		if over && l.cause != nil {
			err = fmt.Errorf("%w: %w", err, l.cause)
		}
		return h.lost(err)
	}
	return err
}

func (h *Host) lost(err error) error {
	return &Error{h.config.Host, StageRPC, ConnectionLost, "", err}
}

// abandon lets the caller go, unless the call has just returned.
func (h *Host) abandon(c *call) (outcome, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case o := <-c.result:
		return o, true
	default:
	}
	c.left = true
	c.link.abandoned++
	h.abandoned++
	h.release(c.link)
	if c.link.abandoned >= max(1, h.config.MaxAbandoned/4) {
		h.retire(c.link)
	}
	go h.follow(c)
	return outcome{}, false
}

// follow sees to a call whose caller has left: is libvirt still there, and does it return?
func (h *Host) follow(c *call) {
	c.link.check()
	select {
	case <-c.gone:
	case <-c.link.done:
	case <-time.After(h.config.StuckAfter):
		h.mu.Lock()
		h.retire(c.link)
		h.mu.Unlock()
	}
}
