package local

import (
	"context"
	"time"
)

// hungAfter is how long a call may take to notice that its context has ended. What
// takes longer hangs in the kernel, at a disk that does not answer.
const hungAfter = time.Second

// attend runs a call that may hang where no context reaches it: that keeps a
// goroutine then, not the caller, for longer than patience. What is left behind goes
// on when the disk does: create and delete look at ctx once more when they have the
// lock of the folder, and then neither start an instance nor end one that serves.
func attend[T any](ctx context.Context, patience time.Duration, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := call()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-late.C:
		var none T
		return none, transient("dir: the disk does not answer: %w", context.Cause(ctx))
	}
}

// attendOnly is attend for a call without a result.
func attendOnly(ctx context.Context, patience time.Duration, call func() error) error {
	_, err := attend(ctx, patience, func() (any, error) { return nil, call() })
	return err
}
