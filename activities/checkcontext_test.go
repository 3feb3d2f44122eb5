package activities_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// A check is in no decorator: what it does has to be below its caller's span, and in its
// caller's log with the provider's name, all the same.
func TestACheckHasTheSpanAndTheLoggerOfItsCaller(t *testing.T) {
	t.Parallel()
	var within trace.SpanContext
	checked := checker{fake.New("f"), func(ctx context.Context) []providers.TargetStatus {
		within = trace.SpanContextFromContext(ctx)
		providers.Logger(ctx).Info("looked")
		return nil
	}}
	hands := &activities.Checks{
		Lookup: func(string) (providers.Provider, func(), bool) { return checked, func() {}, true },
		Names:  func() []string { return []string{"lab"} },
	}
	var log bytes.Buffer
	traces := sdktrace.NewTracerProvider()
	defer func() { _ = traces.Shutdown(context.WithoutCancel(t.Context())) }()
	ctx, span := traces.Tracer("test").Start(t.Context(), "the caller")
	defer span.End()
	_, err := hands.CheckProviders(providers.WithLogger(ctx, slog.New(slog.NewTextHandler(&log, nil))), nil)
	require.NoError(t, err)
	require.True(t, within.IsValid())
	require.Equal(t, span.SpanContext(), within)
	require.Contains(t, log.String(), "msg=looked provider=lab")
}
