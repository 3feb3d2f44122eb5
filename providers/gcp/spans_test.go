package gcp_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
)

// everyCall makes each kind of call that a provider has, with a new one that remembers
// nothing, and returns their names.
func (l *lab) everyCall(ctx context.Context) (methods []string) {
	l.Helper()
	before := len(l.cloud.Calls())
	p := l.reopen(installation)
	defer l.cloud.LeaveDisks()()
	var ids []string
	for _, port := range []int{3128, 3129} { // the rule is made for one, and changed for the other
		id, err := p.Create(ctx, request(func(r *providers.CreateRequest) { inRegion(r); r.Port = port }))
		require.NoError(l, err)
		ids = append(ids, id)
	}
	_, err := p.ListByTag(ctx)
	require.NoError(l, err)
	p.(providers.Checker).Check(ctx)
	for _, id := range ids {
		require.Eventually(l, func() bool {
			require.NoError(l, p.Delete(ctx, id)) // the instance, and then its disk
			_, err := p.Get(ctx, id)
			return providers.ClassOf(err) == providers.ErrNotFound
		}, soon, tick)
	}
	for _, call := range l.cloud.Calls()[before:] {
		methods = append(methods, call.Method)
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

// Google's own spans are below the operation's, also those of calls whose client takes
// no context along; and without one there is none.
func TestGooglesSpansAreBelowTheOperations(t *testing.T) { //nolint:paralleltest // it sets the global provider
	strays := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(strays)))
	defer otel.SetTracerProvider(before)
	l := newLab(t, managed, func(cfg *gcp.Config) { cfg.Zones = []string{zoneA, zoneB} })
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, parent := tracer.Start(t.Context(), "provider.create")
	calls := len(l.cloud.Calls())
	methods := l.everyCall(ctx)
	parent.End()
	require.Equal(t, []string{
		"disks.aggregatedList", "disks.delete", "disks.get",
		"firewalls.delete", "firewalls.get", "firewalls.insert", "firewalls.patch",
		"instances.aggregatedList", "instances.delete", "instances.get", "instances.insert",
		"projects.get", "projects.testIamPermissions", "regions.get",
		"zoneOperations.get", "zoneOperations.list", "zones.get",
	}, methods, "none of the provider's calls is left out")
	ended := spans.Ended()
	require.Len(t, ended, len(l.cloud.Calls())-calls+1, "one for each call, and the operation's")
	for _, span := range ended[:len(ended)-1] {
		require.Equal(t, parent.SpanContext().SpanID(), span.Parent().SpanID(), span.Name())
		require.True(t, strings.HasPrefix(span.InstrumentationScope().Name, "go.opentelemetry.io/contrib/"),
			"it is Google's own: %s", span.InstrumentationScope().Name)
	}
	require.Equal(t, methods, l.everyCall(t.Context()), "also without one")
	require.Empty(t, strays.Ended(), "no span without a parent")
	require.Len(t, spans.Ended(), len(ended))
}
