package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/providers"
)

// grace is how long a provider has to return once its context has ended.
const grace = 3 * time.Second

// result is what a provider call came to.
type result[T any] struct {
	out T
	err error
}

// call finds the provider, gives the call a deadline of its own, beats while it runs
// and puts its error on the wire.
func call[T any](
	ctx context.Context, a *Instances, name string, do func(context.Context, providers.Provider) (T, error),
) (out T, err error) {
	p, release, ok := a.Lookup(name)
	if !ok {
		return out, ToApplicationError(providers.Wrap(providers.ErrPermanent, "lookup", name, "", errNotConfigured))
	}
	ctx, cancel := withinAttempt(logging(ctx, name))
	defer cancel()
	ctx, stop := beating(ctx)
	defer stop()
	ctx, leave := takeUp(ctx, release)
	r := outlive(ctx, name, func(ctx context.Context) (T, error) {
		defer leave() // not before: a call that hangs has the provider still
		return do(ctx, p)
	})
	return r.out, lastWord(ctx, ToApplicationError(r.err))
}

// outlive returns what a provider says, or says for it that it does not return: a
// call that hangs keeps its goroutine, and never a slot of the worker. A panic is an
// error like any other.
func outlive[T any](ctx context.Context, name string, do func(context.Context) (T, error)) result[T] {
	answered := make(chan result[T], 1)
	go func() {
		var r result[T]
		defer func() {
			if p := recover(); p != nil {
				r.err = providers.Wrap(providers.ErrTransient, "call", name, "", fmt.Errorf("the provider panicked: %v", p))
			}
			answered <- r
		}()
		r.out, r.err = do(ctx)
	}()
	select {
	case r := <-answered:
		return r
	case <-ctx.Done():
	}
	select {
	case r := <-answered:
		return r
	case <-time.After(grace):
		return result[T]{err: providers.Wrap(providers.ErrTransient, "call", name, "",
			fmt.Errorf("the provider does not return, %s after its deadline: %w", grace, context.Cause(ctx)))}
	}
}

// logging returns a context whose logger names the proxy and the provider.
func logging(ctx context.Context, provider string) context.Context {
	return providers.WithLogger(ctx, providers.Logger(ctx).With(
		slog.String("workflow", activity.GetInfo(ctx).WorkflowExecution.ID), slog.String("provider", provider)))
}

// withinAttempt ends a call before its attempt ends: what the backend said last then
// reaches the workflow instead of a bare timeout.
func withinAttempt(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*4/5)
}

// lastWord ends the server's retries once their window has passed, however long one
// attempt may take.
func lastWord(ctx context.Context, err error) error {
	if err == nil || time.Since(activity.GetInfo(ctx).ScheduledTime) < retryWindow {
		return err
	}
	f := FaultOf(err)
	return temporal.NewApplicationErrorWithOptions(f.Text, string(f.Class), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{f.Reason},
	})
}

// beating returns a context whose progress becomes heartbeats, and repeats the last
// one by itself until stop is called, so that a dead worker is noticed early.
func beating(ctx context.Context) (context.Context, func()) {
	if activity.GetInfo(ctx).HeartbeatTimeout == 0 {
		return ctx, func() {}
	}
	var mu sync.Mutex
	last := ""
	reported := providers.WithProgress(ctx, func(done, total int64, what string) {
		mu.Lock()
		defer mu.Unlock()
		last = fmt.Sprintf("%s: %d of %d", what, done, total)
		activity.RecordHeartbeat(ctx, last)
	})
	stopped := make(chan struct{})
	go func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				mu.Lock()
				activity.RecordHeartbeat(ctx, last)
				mu.Unlock()
			case <-stopped:
				return
			}
		}
	}()
	return reported, func() { close(stopped) }
}
