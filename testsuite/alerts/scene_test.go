//go:build tools

package alerts_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// orphans are more than a collection deletes without being forced.
const orphans = 6

// The names of the proxies that something is wrong with.
const (
	scarce = "quota-1" // its backend has no room
	stuck  = "stuck-1" // its removal fails
	served = "open-1"  // a stranger on this machine is let in
	nobody = "stranger"
)

func TestAFleetThatFailsInEveryWayIsSeen(t *testing.T) { //nolint:paralleltest // it takes the machine
	w := newWorld(t)
	w.happens()
	for _, alert := range []string{
		"EgressfleetQuotaExceeded", "EgressfleetStuckDeleting", "EgressfleetTargetDown", "EgressfleetGCRefused",
		"EgressfleetBreakerOpen", "EgressfleetOpenProxy", "EgressfleetWorkflowTaskFailures", "EgressfleetScheduleNotRun",
	} {
		w.fires(alert)
	}
	t.Run("no panel of the dashboard is empty", w.filled)
	t.Run("every figure of the processes is on its page", w.onItsPage)
	w.follows("EgressfleetStuckDeleting") // its page ends it
	w.healed()
	for _, alert := range []string{
		"EgressfleetQuotaExceeded", "EgressfleetTargetDown", "EgressfleetGCRefused",
		"EgressfleetScheduleNotRun", "EgressfleetOpenProxy", "EgressfleetBreakerOpen", "EgressfleetWorkflowTaskFailures",
	} {
		w.follows(alert)
	}
	for _, alert := range []string{
		"EgressfleetQuotaExceeded", "EgressfleetStuckDeleting", "EgressfleetTargetDown", "EgressfleetGCRefused",
		"EgressfleetScheduleNotRun", "EgressfleetOpenProxy", "EgressfleetBreakerOpen",
	} {
		w.isOver(alert)
	}
	w.outage()
}

// happens lets each fault that a fleet with its worker can have happen once.
func (w *world) happens() {
	w.faults()
	for _, name := range []string{served, "local-2"} {
		w.want(name, "local", "")
	}
	for n := range orphans + 2 {
		w.want(fmt.Sprintf("gcp-%d", n), "gcp", `, "placement": {"zone": "us-central1-a"}`)
	}
	w.want(scarce, "gcp", `, "placement": {"zone": "us-central1-b"}`)
	w.want(stuck, "gcp", `, "placement": {"zone": "us-central1-c"}, "deadlines": {"delete": "1s"}`)
	for n := range orphans + 2 {
		w.reaches(fmt.Sprintf("gcp-%d", n), "Running")
	}
	for _, name := range []string{stuck, served, "local-2"} {
		w.reaches(name, "Running")
	}
	w.deletes(stuck)
	w.deletes("local-2")
	require.NoError(w.t, w.fleet.RunSweep(w.t.Context(), fleet.DriftSweep(), drift.Input{}, nil))
	w.other.Inject(gcefake.Fault{Answer: gcefake.Captured("get-503-backend")})
	require.NoError(w.t, w.fleet.RunSweep(w.t.Context(), fleet.HealthRound(), health.Input{}, nil))
	require.NoError(w.t, w.fleet.RunSweep(w.t.Context(), fleet.OpenProxyCheck(), openproxy.Input{}, nil))
	w.reaches("local-2", "")
	for n := range orphans {
		require.NoError(w.t, w.temporal.TerminateWorkflow(w.t.Context(),
			proxy.WorkflowID("default", fmt.Sprintf("gcp-%d", n)), "", "so that it is an orphan"))
	}
	require.Eventually(w.t, func() bool {
		in := gc.Input{Providers: []string{"gcp"}, MinAge: time.Second}
		return w.fleet.RunSweep(w.t.Context(), fleet.OrphanGC(), in, nil) != nil
	}, soon, time.Second, "a collection is refused")
}

// faults are what the backends do from now on.
func (w *world) faults() {
	w.cloud.Addresses(func(n uint64) string { return fmt.Sprintf("127.0.9.%d", n%250+1) }) // where nothing listens
	w.cloud.Inject(gcefake.Fault{
		Method: "instances.insert", Zone: "us-central1-b", Answer: gcefake.Captured("create-403-quotaExceeded"),
	})
	w.cloud.Inject(gcefake.Fault{
		Method: "instances.delete", Zone: "us-central1-c", Answer: gcefake.Captured("get-503-backend"),
	})
	require.NoError(w.t, w.fleet.PauseSchedule(w.t.Context(), fleet.DriftSweep().ID, "so that it is late"))
	_, err := w.temporal.ExecuteWorkflow(w.t.Context(), sdk.StartWorkflowOptions{
		ID: nobody, TaskQueue: proxy.TaskQueue,
	}, "NobodyKnows")
	require.NoError(w.t, err)
}

func (w *world) deletes(name string) {
	_, err := w.fleet.Delete(w.t.Context(), "default", name, "planned", fleet.Request{})
	require.NoError(w.t, err)
}

func (w *world) fires(alert string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return len(w.firing(alert)) > 0 }, soon, tick, "%s fires", alert)
}

func (w *world) isOver(alert string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		found, err := w.query(firing(alert))
		return err == nil && len(found) == 0
	}, soon, tick, "%s is over", alert)
}

// filled asks for what the dashboard shows.
func (w *world) filled(t *testing.T) {
	for _, q := range board(t).queries() {
		require.Eventually(t, func() bool {
			found, err := w.query(q.asPrometheusGetsIt("30s"))
			require.NoError(t, err, q.Expr)
			for _, sample := range found {
				if !math.IsNaN(float64(sample.Value)) {
					return true
				}
			}
			return false
		}, soon, tick, "nothing is shown by %s", q.Expr)
	}
}

// onItsPage looks at what the processes really show.
func (w *world) onItsPage(t *testing.T) {
	known := shown(t)
	found, err := w.query(`count by (__name__) ({__name__=~"egressfleet_.+"})`)
	require.NoError(t, err)
	require.Greater(t, len(found), 30)
	for _, sample := range found {
		require.True(t, known[string(sample.Metric["__name__"])], "%s is not in docs/metrics.md", sample.Metric["__name__"])
	}
}

// healed ends what no command of ours ends.
func (w *world) healed() {
	w.cloud.Heal()
	w.other.Heal()
	for _, name := range []string{served, fmt.Sprintf("gcp-%d", orphans), fmt.Sprintf("gcp-%d", orphans+1)} {
		w.deletes(name)
	}
}

// follows runs the commands of an alert's page, in their order.
func (w *world) follows(alert string) {
	w.t.Helper()
	name := scarce
	if alert == "EgressfleetStuckDeleting" {
		name = stuck
	}
	for _, r := range alerts(w.t) {
		if r.Alert != alert {
			continue
		}
		raw, err := os.ReadFile(r.page(w.t))
		require.NoError(w.t, err)
		for _, command := range commands(string(raw)) {
			cmd := exec.CommandContext(w.t.Context(), "bash", "-euc", command)
			cmd.Dir = w.dir
			cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+w.server.Address,
				fmt.Sprintf("EGRESSFLEET_API_PORT=%d", w.api), "API="+w.url(""),
				"METRICS="+fmt.Sprintf("http://127.0.0.1:%d", w.workerMetrics),
				"CONFIG="+filepath.Join(w.dir, "worker.yaml"), "NAME="+name, "PROVIDER=gcp", "WORKFLOW="+nobody)
			out, err := cmd.CombinedOutput()
			require.NoError(w.t, err, "%s: %s\n%s", alert, command, out)
		}
	}
}

// outage takes the worker away, and then Temporal, and brings both back.
func (w *world) outage() {
	kill(w.worker)
	w.fires("EgressfleetNoWorkers")
	require.NoError(w.t, w.server.End(syscall.SIGTERM))
	w.fires("EgressfleetSnapshotStale")
	require.NoError(w.t, w.server.Start(w.t.Context()))
	w.run("worker again", filepath.Join(w.dir, "worker.yaml"))
	for _, alert := range []string{"EgressfleetNoWorkers", "EgressfleetSnapshotStale"} {
		w.isOver(alert)
		w.follows(alert)
	}
}
