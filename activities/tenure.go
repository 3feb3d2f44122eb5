package activities

import (
	"context"
	"sync/atomic"
	"time"
)

// tenure gives a provider back once every call that has it has ended, also one that
// nobody waits for any more.
type tenure struct {
	calls   atomic.Int64
	release func()
}

type tenureKey struct{}

// takeUp returns a context whose calls have a provider, with the first of them begun.
func takeUp(ctx context.Context, release func()) (_ context.Context, leave func()) {
	t := &tenure{release: release}
	return context.WithValue(ctx, tenureKey{}, t), t.join()
}

// join begins a call; leave ends it.
func (t *tenure) join() (leave func()) {
	t.calls.Add(1)
	return func() {
		if t.calls.Add(-1) == 0 {
			t.release()
		}
	}
}

// bounded makes one of several calls to a provider. It returns in time, whatever the
// provider does: what hangs must not hold up the rest of a sweep.
func bounded[T any](
	ctx context.Context, within time.Duration, provider string, do func(context.Context) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	leave := func() {}
	if t, ok := ctx.Value(tenureKey{}).(*tenure); ok {
		leave = t.join()
	}
	r := outlive(ctx, provider, func(ctx context.Context) (T, error) {
		defer leave()
		return do(ctx)
	})
	return r.out, r.err
}

// inTime ends the calls of a sweep early enough to tell what came of them.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-2*grace))
}
