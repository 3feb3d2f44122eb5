package cost

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

// A twin has no schedule, no memo and no version, so that both ways to count have to come
// to the same.
func TestATwinIsCountedTheSameByItsHistoryAndByTheServer(t *testing.T) {
	t.Parallel()
	port, err := ports.Take()
	require.NoError(t, err)
	f, err := live.Serve(t.Context(), "--metrics-port", strconv.Itoa(port))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	m := &meter{temporal: f.Temporal, port: port, ended: map[string]counts{}}
	w := twinWorker(f.Temporal)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	const twins, actions = 2, 1 + 2*(1+2) // a start; a timer and an activity of a Get and of two probes
	got, err := liveTwins(t.Context(), f.Temporal, m, twins, 1)
	require.NoError(t, err)
	require.InDelta(t, twins*actions, got.Actions, 0)
	require.InDelta(t, twins*actions, got.Counter, 0)
	require.Greater(t, got.Events, 2*got.Actions)
	require.Positive(t, got.Transitions)
}
