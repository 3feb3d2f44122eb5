package decorators_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/decorators"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// scene is a faulty provider under the whole stack, with what it leaves behind.
type scene struct {
	providers.Provider
	faults  *fake.Faults
	spans   *tracetest.SpanRecorder
	metrics *prometheus.Registry
}

func newScene() scene {
	s := scene{
		faults: fake.WithFaults(fake.New("lab")), spans: tracetest.NewSpanRecorder(), metrics: prometheus.NewRegistry(),
	}
	s.Provider = decorators.Stack(s.faults, "lab", tracer(s.spans), decorators.NewMetrics(s.metrics))
	return s
}

func tracer(spans *tracetest.SpanRecorder) trace.Tracer {
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
}

// call makes one call of an operation about the instance "a".
func (s scene) call(ctx context.Context, op string) error {
	var err error
	switch op {
	case providers.OpCreate:
		_, err = s.Create(ctx, providers.CreateRequest{Name: "a", UID: "u", Port: 3128})
	case providers.OpGet:
		_, err = s.Get(ctx, fake.ID("a"))
	case providers.OpDelete:
		err = s.Delete(ctx, fake.ID("a"))
	case providers.OpList:
		_, err = s.ListByTag(ctx)
	}
	return err
}

func ops() []string {
	return []string{providers.OpCreate, providers.OpGet, providers.OpList, providers.OpDelete}
}

func attributes(span sdktrace.ReadOnlySpan) map[attribute.Key]string {
	out := map[attribute.Key]string{}
	for _, a := range span.Attributes() {
		out[a.Key] = a.Value.AsString()
	}
	return out
}

func TestEveryCallHasASpanOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newScene()
	for _, op := range ops() {
		require.NoError(t, s.call(t.Context(), op))
	}
	spans := s.spans.Ended()
	require.Len(t, spans, len(ops()))
	for i, op := range ops() {
		id := fake.ID("a")
		if op == providers.OpList {
			id = ""
		}
		require.Equal(t, "provider."+op, spans[i].Name())
		require.Equal(t, trace.SpanKindClient, spans[i].SpanKind())
		require.Equal(t, codes.Unset, spans[i].Status().Code)
		require.Equal(t, map[attribute.Key]string{
			"provider.name": "lab", "provider.id": id, "provider.result": "ok",
		}, attributes(spans[i]))
	}
}

func TestAFailedCallShowsItsClass(t *testing.T) {
	t.Parallel()
	for _, class := range providers.Classes() {
		for _, op := range ops() {
			t.Run(fmt.Sprintf("%s of %s", class, op), func(t *testing.T) {
				t.Parallel()
				s := newScene()
				s.faults.Break(class)
				require.ErrorIs(t, s.call(t.Context(), op), class)
				span := s.spans.Ended()[0]
				require.Equal(t, string(class), attributes(span)["provider.result"])
				if class == providers.ErrNotFound {
					require.Equal(t, sdktrace.Status{}, span.Status(), "polling until NotFound is no error")
				} else {
					require.Equal(t, codes.Error, span.Status().Code)
					require.Contains(t, span.Status().Description, string(class)+": injected")
				}
				require.InDelta(t, 1, count(t, s.metrics, op, string(class)), 0)
			})
		}
	}
}

func TestAnErrorThatIsNotOursShowsItsClassOnly(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.faults.Before(providers.OpGet, func(context.Context) error { return errors.New("token=hunter2") })
	require.ErrorContains(t, s.call(t.Context(), providers.OpGet), "hunter2")
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "Transient"}, s.spans.Ended()[0].Status())
}

func TestBackendCallsAreChildrenOfTheCall(t *testing.T) {
	t.Parallel()
	s := newScene()
	for _, op := range ops() {
		s.faults.Before(op, func(ctx context.Context) error {
			_, span := tracer(s.spans).Start(ctx, "backend")
			span.End()
			return nil
		})
		require.NoError(t, s.call(t.Context(), op))
		ended := s.spans.Ended()
		backend, operation := ended[len(ended)-2], ended[len(ended)-1]
		require.Equal(t, operation.SpanContext().SpanID(), backend.Parent().SpanID(), op)
	}
}

func TestLogLinesOfACallNameItsTrace(t *testing.T) {
	t.Parallel()
	s := newScene()
	var lines bytes.Buffer
	s.faults.Before(providers.OpGet, func(ctx context.Context) error {
		providers.Logger(ctx).InfoContext(ctx, "asked")
		return nil
	})
	ctx := providers.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
	require.NoError(t, s.call(ctx, providers.OpCreate))
	require.NoError(t, s.call(ctx, providers.OpGet))
	sc := s.spans.Ended()[1].SpanContext()
	require.Contains(t, lines.String(), "msg=asked traceID="+sc.TraceID().String()+" spanID="+sc.SpanID().String())
}

func TestWithoutTracingTheLoggerIsTheCallers(t *testing.T) {
	t.Parallel()
	faults := fake.WithFaults(fake.New("lab"))
	callers := slog.New(slog.DiscardHandler)
	faults.Before(providers.OpList, func(ctx context.Context) error {
		require.Same(t, callers, providers.Logger(ctx))
		return nil
	})
	p := decorators.WithTracing(faults, "lab", noop.NewTracerProvider().Tracer("test"))
	_, err := p.ListByTag(providers.WithLogger(t.Context(), callers))
	require.NoError(t, err)
}

func TestCloudInitIsInNoSpanAndNoMetric(t *testing.T) {
	t.Parallel()
	const sentinel = "s3ntinel"
	s := newScene()
	req := providers.CreateRequest{Name: "a", UID: "u", CloudInit: []byte("#cloud-config\n# " + sentinel)}
	_, err := s.Create(t.Context(), req)
	require.NoError(t, err)
	s.faults.Break(providers.ErrPermanent)
	_, err = s.Create(t.Context(), req)
	require.Error(t, err)
	for _, span := range tracetest.SpanStubsFromReadOnlySpans(s.spans.Ended()) {
		require.NotContains(t, fmt.Sprintf("%+v", span), sentinel)
	}
	families, err := s.metrics.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
	require.NotContains(t, fmt.Sprint(families), sentinel)
}

func TestCallsAreCountedByClass(t *testing.T) {
	t.Parallel()
	s := newScene()
	for _, op := range ops() {
		require.NoError(t, s.call(t.Context(), op))
	}
	require.ErrorIs(t, s.call(t.Context(), providers.OpGet), providers.ErrNotFound)
	require.NoError(t, testutil.GatherAndCompare(s.metrics, strings.NewReader(`
# HELP egressfleet_provider_requests_total Calls of a provider by operation and by the class of the error, ok for none.
# TYPE egressfleet_provider_requests_total counter
egressfleet_provider_requests_total{class="NotFound",op="get",provider="lab"} 1
egressfleet_provider_requests_total{class="ok",op="create",provider="lab"} 1
egressfleet_provider_requests_total{class="ok",op="delete",provider="lab"} 1
egressfleet_provider_requests_total{class="ok",op="get",provider="lab"} 1
egressfleet_provider_requests_total{class="ok",op="list",provider="lab"} 1
`), "egressfleet_provider_requests_total"))
	timed, err := testutil.GatherAndCount(s.metrics, "egressfleet_provider_request_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, len(ops()), timed)
}

func count(t *testing.T, metrics *prometheus.Registry, op, class string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if m.GetCounter() != nil && labels["op"] == op && labels["class"] == class && labels["provider"] == "lab" {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestOptionalInterfacesAreFoundThroughTheStack(t *testing.T) {
	t.Parallel()
	s := newScene()
	checker, ok := providers.As[providers.Checker](s.Provider)
	require.True(t, ok)
	require.Len(t, checker.Check(t.Context()), 2)
	require.Empty(t, s.spans.Ended(), "a check is no call of the contract's four")
	_, ok = providers.As[providers.Profiler](s.Provider)
	require.True(t, ok)
	bare, ok := providers.As[*fake.Provider](s.Provider)
	require.True(t, ok)
	require.Equal(t, s.faults.Provider, bare)
}

func TestAnInventoryIsAList(t *testing.T) {
	t.Parallel()
	s := newScene()
	inventory, ok := providers.As[providers.Inventorier](s.Provider)
	require.True(t, ok)
	_, err := inventory.Inventory(t.Context())
	require.NoError(t, err)
	require.Len(t, s.spans.Ended(), 1)
	require.Equal(t, "provider.list", s.spans.Ended()[0].Name())
	require.InDelta(t, 1, count(t, s.metrics, providers.OpList, "ok"), 0)
}

// bare has the four methods and no more.
type bare struct{ providers.Provider }

func TestAProviderWithoutInventoryGetsNone(t *testing.T) {
	t.Parallel()
	s := newScene()
	p := decorators.Stack(bare{s.faults}, "lab", tracer(s.spans), decorators.NewMetrics(prometheus.NewRegistry()))
	_, ok := providers.As[providers.Inventorier](p)
	require.False(t, ok)
}
