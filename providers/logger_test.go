package providers_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestLoggerComesFromTheContext(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := slog.New(slog.NewTextHandler(&out, nil)).With(slog.String("traceID", "t1"))
	ctx := providers.WithLogger(t.Context(), l)

	child, cancel := context.WithCancel(ctx)
	defer cancel()
	providers.Logger(child).Info("hello")

	require.Contains(t, out.String(), "traceID=t1")
}

func TestLoggerFallsBackToTheDefault(t *testing.T) {
	t.Parallel()
	require.Same(t, slog.Default(), providers.Logger(t.Context()))
	require.Same(t, slog.Default(), providers.Logger(providers.WithLogger(t.Context(), nil)))
}

func TestLogTiersAreOrderedBelowInfo(t *testing.T) {
	t.Parallel()
	require.Less(t, providers.LevelOutcome, slog.LevelInfo)
	require.Less(t, providers.LevelDetail, providers.LevelOutcome)
	require.Less(t, providers.LevelWire, providers.LevelDetail)
}
