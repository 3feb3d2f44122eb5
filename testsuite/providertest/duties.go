package providertest

import (
	"context"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/providers"
)

func dutyRows() []Row {
	return []Row{
		{
			Name: "OperationSpansAreTheDecorators", Section: "9", run: operationSpansAreTheDecorators,
			Breaks: "each operation is traced twice, and durations in dashboards are added up twice",
		},
		{
			Name: "NoSpanWithoutACaller", Section: "9", run: noSpanWithoutACaller,
			Breaks: "background traffic fills the traces with roots that nobody asked for",
		},
		{
			Name: "EachCallHasItsLogger", Section: "9", run: eachCallHasItsLogger,
			Breaks: "lines carry the trace of another call, or none; nobody finds why a create failed",
		},
		{
			Name: "ContextReachesTheBackend", Section: "9", Needs: "Lab.Backend", run: contextReachesTheBackend,
			Breaks: "backend calls outlive their caller and leave its trace",
		},
		{
			Name: "LeavesTheProcessAlone", Section: "9", Apart: true, run: leavesTheProcessAlone,
			Breaks: "the decorators count and trace; a second count, or lines past the caller's logger, mislead",
		},
	}
}

// withSpan makes calls under the span of a caller, and returns that span and what
// was seen below it.
func (s *scene) withSpan(calls func(context.Context)) (sdktrace.ReadOnlySpan, *watch) {
	s.Helper()
	w := new(watch)
	ctx, parent := caller(providers.WithLogger(s.Context(), w.logger()))
	calls(w.under(ctx))
	parent.End()
	read, ok := parent.(sdktrace.ReadOnlySpan)
	require.True(s, ok, "a span of the SDK can be read")
	return read, w
}

// operationSpans are the names that the decorators use.
func operationSpans() []string {
	return []string{
		"provider." + providers.OpCreate, "provider." + providers.OpGet,
		"provider." + providers.OpDelete, "provider." + providers.OpList,
	}
}

func operationSpansAreTheDecorators(s *scene) {
	parent, w := s.withSpan(func(ctx context.Context) { s.tour(ctx, s.request(), nowhere) })
	spans := w.started()
	if s.profile.ChildSpans != providers.SpansNone {
		require.NotEmpty(s, spans, "the profile promises child spans")
	}
	family := map[trace.SpanID]bool{parent.SpanContext().SpanID(): true}
	for _, span := range spans { // a child begins after its parent
		require.NotContains(s, operationSpans(), span.Name(), "the span of an operation is the decorators'")
		require.True(s, family[span.Parent().SpanID()], "the span %s is no child of its caller's", span.Name())
		family[span.SpanContext().SpanID()] = true
	}
}

func noSpanWithoutACaller(s *scene) {
	tracing()
	w := new(watch)
	ctx := w.under(providers.WithLogger(s.Context(), w.logger()))
	s.tour(ctx, s.request(), nowhere)
	require.Empty(s, spanText(w.started()), "spans without a caller's span")
}

// eachCallHasItsLogger makes one call after the other, and many at once, each with a
// logger of its own.
func eachCallHasItsLogger(s *scene) {
	first, second := new(watch), new(watch)
	req := s.request()
	id, err := s.p.Create(providers.WithLogger(s.Context(), first.logger()), req)
	require.NoError(s, err)
	before := first.said()
	for _, c := range s.calls(req, id) {
		s.worked(c.run(providers.WithLogger(s.Context(), second.logger())))
	}
	require.Equal(s, before, first.said(), "a later call writes to the logger of an earlier one")
	if s.profile.Logging != providers.LoggingNone {
		require.NotEmpty(s, before, "the profile promises a line for each operation")
		require.NotEmpty(s, second.said(), "the profile promises a line for each operation")
	}
	s.apartAtOnce()
}

// worked checks a call that may meet one that is under way still.
func (s *scene) worked(err error) {
	s.Helper()
	if err != nil {
		require.ErrorIs(s, err, providers.ErrTransient)
	}
}

// apartAtOnce looks for the instance of one call in the lines of the others.
func (s *scene) apartAtOnce() {
	s.Helper()
	reqs := s.requests(concurrency)
	watches := make([]watch, len(reqs))
	errs := make([]error, len(reqs))
	var calls sync.WaitGroup
	for i, req := range reqs {
		calls.Go(func() { _, errs[i] = s.p.Create(providers.WithLogger(s.Context(), watches[i].logger()), req) })
	}
	calls.Wait()
	for i := range watches {
		require.NoError(s, errs[i])
		for j, other := range reqs {
			if i != j {
				require.NotContains(s, watches[i].said(), other.Name, "lines of one call at the logger of another")
			}
		}
	}
}

type callKey struct{}

// contextReachesTheBackend looks at the contexts that arrive: they know their caller,
// and end with it.
func contextReachesTheBackend(s *scene) {
	var mu sync.Mutex
	var arrived []context.Context
	s.suite.Lab.Backend(s.host, s.p, func(ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, ctx)
	})
	req := s.request()
	ctx, cancel := context.WithCancel(context.WithValue(s.Context(), callKey{}, req.UID))
	defer cancel()
	id, err := s.p.Create(ctx, req)
	require.NoError(s, err)
	for _, c := range s.calls(req, id) {
		s.worked(c.run(ctx))
	}
	mu.Lock()
	seen := slices.Clone(arrived)
	mu.Unlock()
	require.NotEmpty(s, seen, "Suite.Lab.Backend shows the contexts of backend calls")
	cancel()
	for _, at := range seen {
		require.Equal(s, req.UID, at.Value(callKey{}), "a backend call has not the context of its caller")
		require.Error(s, at.Err(), "a backend call goes on after its caller has gone")
	}
}

// leavesTheProcessAlone runs where the process is the row's own: what the provider
// prints, counts or traces there is seen, whichever library does it.
func leavesTheProcessAlone(s *scene) {
	tracing()
	before := s.counted()
	w := new(watch)
	s.tour(w.under(providers.WithLogger(s.Context(), w.logger())), s.request(), nowhere)
	require.Empty(s, spanText(strays.started()), "spans without the context of the call")
	require.Equal(s, before, s.counted(), "requests are counted by the decorators")
}
