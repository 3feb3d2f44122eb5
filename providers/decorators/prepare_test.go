package decorators_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/decorators"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func TestAPrepareIsTracedAndCounted(t *testing.T) {
	t.Parallel()
	spans, registry := tracetest.NewSpanRecorder(), prometheus.NewRegistry()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
	p := decorators.Stack(fake.New("lab"), "lab", tracer, decorators.NewMetrics(registry))
	preparer, ok := providers.As[providers.Preparer](p)
	require.True(t, ok)
	require.NoError(t, preparer.Prepare(t.Context(), providers.CreateRequest{Name: "proxy-a"}))
	require.Len(t, spans.Ended(), 1)
	require.Equal(t, "provider.prepare", spans.Ended()[0].Name())
	count, err := testutil.GatherAndCount(registry, "egressfleet_provider_requests_total")
	require.NoError(t, err)
	require.Equal(t, 1, count, "once, however many decorators there are")
	_, ok = providers.As[providers.Inventorier](p)
	require.True(t, ok, "the other optional interfaces are found as before")
}

func TestNothingPreparesThatDoesNot(t *testing.T) {
	t.Parallel()
	bare := struct{ providers.Provider }{fake.New("lab")}
	tracer := trace.NewTracerProvider().Tracer("test")
	p := decorators.Stack(bare, "lab", tracer, decorators.NewMetrics(prometheus.NewRegistry()))
	_, ok := providers.As[providers.Preparer](p)
	require.False(t, ok)
}
