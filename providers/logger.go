package providers

import (
	"context"
	"log/slog"
)

// The log tiers, below Info, so that a provider is silent unless it is asked.
// Contract §4.17.
const (
	LevelOutcome = slog.LevelDebug     // one line per operation and per failed backend call
	LevelDetail  = slog.LevelDebug - 4 // request and response, without secrets
	LevelWire    = slog.LevelDebug - 8 // raw wire, redacted
)

type loggerKey struct{}

// WithLogger returns a context whose Logger is l. Callers put in one that carries
// traceID and spanID, so that a provider's lines join the trace. Contract §9.
func WithLogger(ctx context.Context, l *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, l)
}

// Logger returns the logger of a context, slog.Default() where there is none. A
// provider asks at call time: a logger kept from construction loses the trace.
func Logger(ctx context.Context) *slog.Logger {
	if l, ok := ctx.Value(loggerKey{}).(*slog.Logger); ok && l != nil {
		return l
	}
	return slog.Default()
}
