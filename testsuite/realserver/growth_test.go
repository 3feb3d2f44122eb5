package realserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	mostEventsADay = 50
	// A run is at most seven days old.
	daysPerRun = 7
	// changesADay is how often the verdict about a steady proxy changes: twice it is ill,
	// and well again. A verdict that does not change is not sent.
	changesADay = 4
)

// growth is what the history of a running proxy grows by, in events.
type growth struct{ lease, change, run int }

// aDay is what a proxy that runs writes in 24 hours of production: looks write nothing,
// a lease has a cost, and so have a changed verdict and a new run.
func (g growth) aDay(leases, changes int) int {
	return leases*g.lease + changes*g.change + quotient(g.run, daysPerRun)
}

// quotient is rounded up.
func quotient(a, b int) int { return (a + b - 1) / b }

// Leases are shortened here; what one costs is not.
func TestASteadyProxyWritesFewerThanFiftyEventsADay(t *testing.T) {
	t.Parallel()
	var g growth
	t.Run("measured", func(t *testing.T) {
		t.Run("a lease", func(t *testing.T) { g.lease = eventsPerLease(t) })
		t.Run("a verdict and a new run", func(t *testing.T) { g.change, g.run = eventsPerChange(t) })
	})
	leases := int(24 * time.Hour / proxy.DefaultTiming().Steady.Lease)
	quiet, busy := g.aDay(leases, 0), g.aDay(leases, changesADay)
	t.Logf("a day: %d leases x %d + a new run of %d / %d days = %d events; with %d changed verdicts x %d = %d",
		leases, g.lease, g.run, daysPerRun, quiet, changesADay, g.change, busy)
	require.Positive(t, g.lease*g.change*g.run, "all three were measured")
	require.LessOrEqual(t, g.lease, 6)
	require.Less(t, busy, mostEventsADay)
}

// eventsPerLease lets some leases pass with many looks each.
func eventsPerLease(t *testing.T) int {
	const leases = 3
	timing := quick()
	// A server lets a second pass between two looks, whatever is asked for.
	timing.Steady = proxy.Pace{Poll: 100 * time.Millisecond, Max: 100 * time.Millisecond, Lease: 3 * time.Second}
	l := newLab(t, timing)
	l.born()
	born, byType := l.events("")
	t.Logf("to Running: %d events %v", born, byType)
	require.LessOrEqual(t, born, 40)
	before, ended := l.backend.Calls(providers.OpGet), byType[enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED]
	var total, looks, passed int
	require.Eventually(t, func() bool {
		total, byType = l.events("")
		passed = byType[enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED] - ended
		looks = l.backend.Calls(providers.OpGet) - before
		return passed >= leases && looks > passed+leases
	}, soon, tick, "leases end, and most looks write nothing")
	t.Logf("%d leases with %d looks later: %d events more %v", passed, looks, total-born, byType)
	l.deleted()
	return quotient(total-born, passed)
}

// eventsPerChange measures what a changed verdict costs, and what a new run does.
func eventsPerChange(t *testing.T) (change, run int) {
	l := newLab(t, quick())
	l.born()
	verdicts := []proxy.HealthReport{{Reason: v1.ReasonUnreachable}, {Healthy: true, Reason: v1.ReasonHealthy}}
	for _, report := range verdicts {
		before, _ := l.events("")
		l.signal(proxy.SignalHealth, report)
		require.Eventually(t, func() bool {
			healthy := l.get().Status.Healthy
			return healthy != nil && *healthy == report.Healthy
		}, soon, tick)
		after, byType := l.events("")
		t.Logf("%s: %d events more %v", report.Reason, after-before, byType)
		change = max(change, after-before)
	}
	first := l.runID()
	before, _ := l.events(first)
	l.handOver(first)
	l.running()
	closing, _ := l.events(first)
	opening, byType := l.events("")
	t.Logf("a new run: %d events to close the old one, %d to open the new one %v", closing-before, opening, byType)
	l.deleted()
	return change, closing - before + opening
}
