package gcp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// Google's own spans are below the operation's, also those of calls whose client takes
// no context along; and without one there is none.
func TestGooglesSpansAreBelowTheOperations(t *testing.T) { //nolint:paralleltest // it sets the global provider
	strays := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(strays)))
	defer otel.SetTracerProvider(before)
	l := newLab(t, managed)
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, parent := tracer.Start(t.Context(), "provider.create")
	calls := len(l.cloud.Calls())
	id, err := l.Create(ctx, request())
	require.NoError(t, err)
	_, err = l.ListByTag(ctx)
	require.NoError(t, err)
	l.check(ctx)
	parent.End()
	ended := spans.Ended()
	require.Len(t, ended, len(l.cloud.Calls())-calls+1, "one for each call, and the operation's")
	for _, span := range ended[:len(ended)-1] {
		require.Equal(t, parent.SpanContext().SpanID(), span.Parent().SpanID(), span.Name())
		require.True(t, strings.HasPrefix(span.InstrumentationScope().Name, "go.opentelemetry.io/contrib/"),
			"it is Google's own: %s", span.InstrumentationScope().Name)
	}
	_, err = l.Get(t.Context(), id)
	require.NoError(t, err)
	_, err = l.ListByTag(t.Context())
	require.NoError(t, err)
	l.check(t.Context())
	require.Empty(t, strays.Ended(), "no span without a parent")
	require.Len(t, spans.Ended(), len(ended))
}
