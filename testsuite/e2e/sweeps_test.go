package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// fails runs the command line, and expects it to exit with an error.
func (w *world) fails(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(bin, "starter"), args...)
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+w.server.Address)
	out, err := cmd.CombinedOutput()
	require.Error(w.t, err, string(out))
	return string(out)
}

// swept runs a sweep for orphans by the command line.
func (w *world) swept(args ...string) gc.Sweep {
	w.t.Helper()
	var r gc.Result
	require.NoError(w.t, json.Unmarshal([]byte(w.starter(append([]string{"gc", "-o", "json"}, args...)...)), &r))
	require.Len(w.t, r.Sweeps, 1)
	return r.Sweeps[0]
}

func TestTheFleetLooksAfterItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("worker.yaml", w.read("worker.yaml")+"check: {interval: 2s}\n")
	w.start()
	for _, name := range []string{"a", "b"} {
		status, body := w.put(name, spec)
		require.Equal(t, http.StatusCreated, status, string(body))
	}
	w.running("a")
	b := w.running("b")

	for name, every := range map[string]string{"gc": "10m0s", "drift": "2m0s", "check": "2s"} {
		require.Contains(t, w.starter(name, "status"), ": every "+every+"\n")
	}
	require.Contains(t, w.starter("drift", "run"), "local     2")
	require.Contains(t, w.starter("check", "run"), "Reachable")
	require.Eventually(t, func() bool { // the schedule's own run
		list := w.providers()
		return len(list.Items) == 1 && list.Items[0].Check != nil && list.Items[0].Check.Targets[0].Ready
	}, soon, tick)

	w.temporal("terminate", "--workflow-id", "proxy/default/b")
	young := w.swept("plan", "--everything")
	require.Equal(t, []int{2, 2, 0}, []int{young.Listed, young.Young, young.Convicts}, "none is ten minutes old")
	require.Zero(t, w.swept("run").Deleted)
	require.Len(t, w.processes(), 2)

	// By its own input a sweep may look at younger ones.
	w.temporal("execute", "--type", gc.WorkflowType, "--task-queue", "egressfleet", "--workflow-id", "by-a-person",
		"--input", `{"minAge": 1}`)
	require.Eventually(t, func() bool { return len(w.processes()) == 1 }, soon, tick, "it is collected")
	require.NotContains(t, w.processes(), filepath.Base(b.Status.ProviderID))
	require.Equal(t, v1.PhaseRunning, w.get("a").Status.Phase)
	w.deleteAll()
}

func TestReport21ALostInstanceIsNoticedByTheSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("worker.yaml", strings.Replace(w.read("worker.yaml"),
		"steadyPoll: 1s", "steadyPoll: 1h\ndrift: {interval: 1s}", 1))
	w.start()
	status, body := w.put("a", spec)
	require.Equal(t, http.StatusCreated, status, string(body))
	require.Contains(t, w.starter("drift", "status"), "drift-sweep: every 1s\n")
	first := w.running("a").Status.InstanceCreatedAt
	for _, pids := range w.processes() {
		require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	}
	w.renewed("a", first)
	w.deleteAll()
}

func TestReport20DrainLeavesNothingOrSaysWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for _, name := range []string{"a", "b", "c"} {
		status, body := w.put(name, spec)
		require.Equal(t, http.StatusCreated, status, string(body))
		w.running(name)
	}
	require.Eventually(t, func() bool { return len(w.list()) == 3 }, soon, tick)
	require.Contains(t, w.fails("drain", "--all"), "--yes deletes these, 3 in all")
	require.Len(t, w.processes(), 3)
	w.temporal("terminate", "--workflow-id", "proxy/default/c")
	left := w.fails("drain", "--provider", "local", "--yes", "--timeout", "20s")
	require.Contains(t, left, "default/c")
	require.Contains(t, left, "Young")
	require.Len(t, w.processes(), 1)

	w.temporal("execute", "--type", gc.WorkflowType, "--task-queue", "egressfleet", "--workflow-id", "by-a-person",
		"--input", `{"minAge": 1}`)
	require.Equal(t, "nothing is left\n", w.starter("drain", "--all", "--yes"))
	require.Empty(t, w.processes())
	require.Empty(t, w.files())
}
