package providers

import "context"

// ProgressFunc is told how far long work has come: done of total units (0 when
// unknown) of what.
type ProgressFunc func(done, total int64, what string)

type progressKey struct{}

// WithProgress returns a context whose Progress calls reach report. Activities
// turn them into heartbeats; a provider knows no Temporal.
func WithProgress(ctx context.Context, report ProgressFunc) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress reports how far long work has come. Without a listener it does nothing.
func Progress(ctx context.Context, done, total int64, what string) {
	if report, ok := ctx.Value(progressKey{}).(ProgressFunc); ok {
		report(done, total, what)
	}
}
