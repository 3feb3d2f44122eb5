package fake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Hook runs around a call; its error replaces the call's own result.
type Hook func(context.Context) error

// Failing returns a hook that always fails with the class.
func Failing(class providers.Class) Hook { return FailingWith(class, "injected") }

// FailingWith returns a hook that always fails with the class and the text.
func FailingWith(class providers.Class, text string) Hook {
	return func(context.Context) error { return &providers.Error{Class: class, Err: errors.New(text)} }
}

// Once returns a hook that fails with the class the first time only.
func Once(class providers.Class) Hook {
	var once sync.Once
	return func(ctx context.Context) (err error) {
		once.Do(func() { err = Failing(class)(ctx) })
		return err
	}
}

// Hanging is a hook that returns only when the call's context ends.
func Hanging(ctx context.Context) error {
	<-ctx.Done()
	return &providers.Error{Class: providers.ErrTransient, Err: ctx.Err()}
}

// Panicking is a hook that panics, as a bug in a provider does.
func Panicking(text string) Hook { return func(context.Context) error { panic(text) } }

// Delayed is a hook that lets a call take a while, by a clock that the test has:
// time.After in a bubble of testing/synctest, or one that it turns by hand.
func Delayed(d time.Duration, after func(time.Duration) <-chan time.Time) Hook {
	return func(ctx context.Context) error {
		select {
		case <-after(d):
			return nil
		case <-ctx.Done():
			return Hanging(ctx)
		}
	}
}

// Gate holds calls until a test opens it: Before(op, gate.Wait).
type Gate struct {
	arrived chan struct{}
	open    chan struct{}
	once    sync.Once
}

// NewGate returns a gate that is shut.
func NewGate() *Gate { return &Gate{arrived: make(chan struct{}), open: make(chan struct{})} }

// Wait is a hook that returns when the gate opens, or when the call's context ends.
func (g *Gate) Wait(ctx context.Context) error {
	select {
	case g.arrived <- struct{}{}:
	case <-g.open:
		return nil
	case <-ctx.Done():
		return Hanging(ctx)
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return Hanging(ctx)
	}
}

// Arrived returns once for each call that is at the gate. A call goes on to wait only
// after somebody has seen it there.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Open lets all calls pass, those that come later, too.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }
