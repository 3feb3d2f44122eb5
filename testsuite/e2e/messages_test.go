package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestAProxyIsHeldResumedAndReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	status, body := w.put("a", spec)
	require.Equal(t, http.StatusCreated, status, string(body))
	w.running("a")
	w.discovered(1)

	require.Equal(t, "default/a is held until it is resumed\n", w.starter("hold", "a", "--reason", "billing"))
	require.True(t, w.get("a").Status.Held)
	w.discovered(0)
	held := w.told("a", "hold", http.StatusOK, v1.Hold{Reason: "billing", For: "1s"})
	require.True(t, held.Status.Held)
	w.discovered(1) // its time was over

	w.told("a", "hold", http.StatusOK, v1.Hold{})
	w.discovered(0)
	require.False(t, w.told("a", "resume", http.StatusOK, v1.Why{Reason: "paid"}).Status.Held)
	w.discovered(1)

	first := w.get("a").Status.InstanceCreatedAt
	require.Equal(t, "default/a is being replaced\n", w.starter("replace", "a", "--reason", "banned"))
	w.renewed("a", first)
	second := w.get("a").Status.InstanceCreatedAt
	w.told("a", "replace", http.StatusAccepted, v1.Why{})
	w.renewed("a", second)
	w.told("a", "retry", http.StatusAccepted, v1.Why{})
	require.Equal(t, "default/a is tried again\n", w.starter("retry", "a"))

	reasons := w.timeline("a")
	for _, want := range []string{"HoldRequested", "Resumed", "ReplaceRequested", "RetryRequested"} {
		require.Contains(t, reasons, want)
		require.Contains(t, w.starter("timeline", "a"), want)
	}
	require.Less(t, slices.Index(reasons, "HoldRequested"), slices.Index(reasons, "RetryRequested"),
		"the newest is the last")
	w.deleteAll()
}

func TestAProxyWhoseProviderIsGoneForGoodCanBeEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for _, name := range []string{"a", "b"} {
		status, body := w.put(name, spec)
		require.Equal(t, http.StatusCreated, status, string(body))
		w.running(name)
	}
	w.kill()
	w.write("providers.yaml", "providers:\n- name: other\n  type: local\n  local:\n    dir: "+t.TempDir()+"\n")
	w.start()
	status, body := w.call(http.MethodDelete, path("a"), nil)
	require.Equal(t, http.StatusAccepted, status, string(body))
	require.Eventually(t, func() bool {
		c, _ := w.get("a").Status.Condition(v1.ConditionDeleting)
		return c.Reason == v1.ReasonProviderNotConfigured
	}, soon, tick, "it is stuck")

	status, body = w.call(http.MethodDelete, path("a")+"?skipCleanup=true", nil)
	require.Equal(t, http.StatusBadRequest, status, string(body))
	require.Contains(t, string(body), `"field":"reason"`)
	id := w.get("a").Status.ProviderID
	require.Equal(t, "default/a has ended: instance "+id+
		" on provider local is left behind, not verified (the host is gone)\n",
		w.starter("delete", "a", "--skip-cleanup", "--reason", "the host is gone"))
	w.gone("a")
	status, body = w.call(http.MethodDelete, path("b")+"?skipCleanup=true&reason=the+host+is+gone", nil)
	require.Equal(t, http.StatusAccepted, status, string(body))
	w.gone("b")
	require.Len(t, w.processes(), 2, "nobody touched what was left")
}

// starter runs the command line, and expects it to succeed without a complaint.
func (w *world) starter(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(bin, "starter"), args...)
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+w.server.Address)
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, string(out))
	return string(out)
}

// told sends a message by HTTP and returns the Proxy of the answer.
func (w *world) told(name, message string, want int, body any) (p v1.Proxy) {
	w.t.Helper()
	status, answer := w.call(http.MethodPost, path(name)+"/"+message, body)
	require.Equal(w.t, want, status, string(answer))
	require.NoError(w.t, json.Unmarshal(answer, &p))
	return p
}

// timeline returns the reasons of a Proxy's events.
func (w *world) timeline(name string) (reasons []string) {
	w.t.Helper()
	status, body := w.call(http.MethodGet, path(name)+"/timeline", nil)
	require.Equal(w.t, http.StatusOK, status, string(body))
	var list struct{ Items []v1.Event }
	require.NoError(w.t, json.Unmarshal(body, &list))
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

// discovered waits until discovery hands out so many endpoints.
func (w *world) discovered(n int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		status, _ := w.call(http.MethodGet, "/v1/discovery", nil)
		return status == http.StatusOK && len(w.endpoints()) == n
	}, soon, tick)
}

// renewed waits until a proxy runs on an instance that is younger.
func (w *world) renewed(name string, than time.Time) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		s := w.get(name).Status
		return s.Phase == v1.PhaseRunning && s.InstanceCreatedAt.After(than)
	}, soon, tick)
	require.Len(w.t, w.processes(), 1)
}
