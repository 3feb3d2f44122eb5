package providertest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// T is what a row needs of *testing.T.
type T interface {
	require.TestingT
	Context() context.Context
	Cleanup(cleanup func())
	Helper()
}

// recorder is a T that keeps failures instead of failing.
type recorder struct {
	ctx context.Context //nolint:containedctx // it stands for a test, which has one

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// record runs a row to its end and returns its failures. What fails while the row
// cleans up is not counted: a broken provider may well not clean up.
func record(t *testing.T, row func(*recorder)) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{ctx: ctx}
	alone(func() { row(r) })
	cancel()
	r.mu.Lock()
	failures, cleanups := slices.Clone(r.failures), r.cleanups
	r.mu.Unlock()
	for _, cleanup := range slices.Backward(cleanups) {
		alone(cleanup)
	}
	return failures
}

// alone runs f in a goroutine that FailNow may end.
func alone(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// Errorf keeps the failure.
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// FailNow ends the row.
func (r *recorder) FailNow() { runtime.Goexit() }

// Context ends before the cleanups run.
func (r *recorder) Context() context.Context { return r.ctx }

// Cleanup runs f after the row, the last one first.
func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Helper does nothing: no line number is kept.
func (r *recorder) Helper() {}
