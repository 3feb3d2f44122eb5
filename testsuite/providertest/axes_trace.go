package providertest

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/egressfleet/egressfleet/providers"
)

// axesTraceRows are about logging and child-spans.
func axesTraceRows() []Row {
	return []Row{
		{
			Name: "LogHasTheTiersOfTheProfile", Section: "4.17", run: logHasTheTiers,
			Breaks: "who turns a level on to see why a create fails sees nothing, or too much",
		},
		{
			Name: "BackendCallsAreChildSpans", Section: "4.18", run: backendCallsAreChildSpans,
			Breaks: "a slow create cannot be told apart into its backend calls, or each is a trace of its own",
		},
	}
}

// levels is a log handler that keeps the level of each line.
type levels struct {
	slog.Handler
	mu   sync.Mutex
	seen []slog.Level
}

func (l *levels) Enabled(context.Context, slog.Level) bool { return true }
func (l *levels) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *levels) WithGroup(string) slog.Handler            { return l }

func (l *levels) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, r.Level)
	return nil
}

// take returns how many lines there were since the last time: loud, outcome, finer.
func (l *levels) take() (loud, outcome, finer int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, level := range l.seen {
		switch {
		case level >= slog.LevelInfo:
			loud++
		case level == providers.LevelOutcome:
			outcome++
		default:
			finer++
		}
	}
	l.seen = nil
	return loud, outcome, finer
}

func logHasTheTiers(s *scene) {
	handler := &levels{Handler: slog.DiscardHandler}
	ctx := providers.WithLogger(s.Context(), slog.New(handler))
	req, id := s.created()
	s.running(id, nothing)
	other := s.request()
	fresh := call{providers.OpCreate, func(ctx context.Context) error { _, err := s.p.Create(ctx, other); return err }}
	details := 0
	for _, c := range append([]call{fresh}, s.calls(req, id)...) {
		require.NoError(s, c.run(ctx))
		details += s.tiers(c.op, handler)
	}
	s.gone(id, nothing)
	if s.profile.Logging == providers.LoggingTiered {
		require.NotZero(s, details, "the profile says that there are finer tiers than outcomes")
	} else {
		require.Zero(s, details, "the profile says that there are outcomes only")
	}
}

// tiers checks the lines of one call, and returns how many are finer than its outcome.
func (s *scene) tiers(op string, handler *levels) (details int) {
	s.Helper()
	loud, outcome, finer := handler.take()
	require.Zero(s, loud, "lines of %s that nobody asked for", op)
	if s.profile.Logging == providers.LoggingNone {
		require.Zero(s, outcome+finer, "lines of %s; the profile says that there are none", op)
		return 0
	}
	require.NotZero(s, outcome, "%s logs its outcome with the logger of its context", op)
	return finer
}

func backendCallsAreChildSpans(s *scene) {
	req, id := s.created()
	s.running(id, nothing)
	for _, c := range s.calls(req, id) {
		spans := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("providertest")
		ctx, parent := tracer.Start(s.Context(), "provider."+c.op)
		require.NoError(s, c.run(ctx))
		children := spans.Ended()
		parent.End()
		require.Len(s, spans.Started(), len(children)+1, "%s ends the spans that it starts", c.op)
		if s.profile.ChildSpans == providers.SpansNone {
			require.Empty(s, children, "spans of %s; the profile says that there are none", c.op)
			continue
		}
		require.NotEmpty(s, children, "%s has a span for each backend call", c.op)
		s.descend(children, parent.SpanContext().TraceID().String(), c.op)
	}
	s.gone(id, nothing)
}

// descend checks that spans belong to a trace and are no second span of the operation.
func (s *scene) descend(spans []sdktrace.ReadOnlySpan, traceID, op string) {
	s.Helper()
	for _, span := range spans {
		require.Equal(s, traceID, span.SpanContext().TraceID().String(), "trace of the span %s of %s", span.Name(), op)
		require.True(s, span.Parent().IsValid(), "%s of %s has a parent", span.Name(), op)
		require.False(s, strings.HasPrefix(span.Name(), "provider."), "%s is the decorator's span", span.Name())
	}
}
