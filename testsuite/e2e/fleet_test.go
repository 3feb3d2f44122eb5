package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

var spec = v1.ProxySpec{Provider: "local", Port: 3128}

func TestAProxyComesAliveIsFoundCarriesTrafficAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	status, body := w.put("a", spec)
	require.Equal(t, http.StatusCreated, status, string(body))
	status, _ = w.put("a", spec)
	require.Equal(t, http.StatusOK, status, "the same again")
	p := w.running("a")
	endpoint := fmt.Sprintf("http://%s:%d", p.Status.IP, spec.Port)
	require.Eventually(t, func() bool {
		list := w.endpoints()
		return len(list) == 1 && list[0] == endpoint
	}, soon, tick, "discovery hands it out")
	for _, secure := range []bool{false, true} {
		require.Contains(t, fetch(t, endpoint, site(t, secure)), "hello "+p.Status.EgressIP+":", "its egress is its own")
	}
	verdict := w.probe(p)
	require.Equal(t, v1.ReasonHealthy, verdict.Reason, verdict.Text)
	require.Equal(t, p.Status.EgressIP, verdict.EgressIP, "as a probe sees it, too")

	for _, pids := range w.processes() {
		require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	}
	// Its address follows from its name, so the new instance is told by its age.
	require.Eventually(t, func() bool {
		now := w.get("a").Status
		return now.Phase == v1.PhaseRunning && now.InstanceCreatedAt.After(p.Status.InstanceCreatedAt)
	}, soon, tick, "a killed instance is replaced")
	require.Len(t, w.processes(), 1, "without a second one left behind")
	require.Contains(t, fetch(t, endpoint, site(t, true)), "hello")

	status, body = w.put("a", v1.ProxySpec{Provider: "elsewhere", Port: 3128})
	require.Equal(t, http.StatusConflict, status, string(body))
	w.deleteAll()
}

func TestAKilledWorkerMakesEachOfFiftyInstancesOnce(t *testing.T) {
	t.Parallel()
	const fleet, enough = 50, 10
	w := newWorld(t)
	w.start()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for i := range fleet {
			w.put(fmt.Sprintf("p%d", i), spec) // those after the kill find nobody
		}
	}()
	require.Eventually(t, func() bool { return len(w.processes()) >= enough }, soon, time.Millisecond)
	w.kill()
	<-asked
	made := len(w.processes())
	t.Logf("killed with %d instances made", made)
	require.Less(t, made, fleet, "it was in the middle of creating")
	w.start()
	for i := range fleet {
		status, body := w.put(fmt.Sprintf("p%d", i), spec)
		require.Contains(t, []int{http.StatusCreated, http.StatusOK}, status, string(body))
	}
	require.Eventually(t, func() bool {
		running := 0
		for _, p := range w.list() {
			if p.Status.Phase == v1.PhaseRunning {
				running++
			}
		}
		return running == fleet
	}, soon, tick)
	processes := w.processes()
	require.Len(t, processes, fleet)
	for name, pids := range processes {
		require.Len(t, pids, 1, name)
	}
	require.Eventually(t, func() bool { return len(w.endpoints()) == fleet }, soon, tick)
	w.deleteAll()
}

func TestTheTemporalCommandLineIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.temporal("start", "--type", "Proxy", "--task-queue", "egressfleet", "--workflow-id", "proxy/default/bare",
		"--input", `{"spec":{"provider":"local","port":3128}}`)
	p := w.running("bare")
	require.NotEmpty(t, p.Status.IP)
	w.temporal("signal", "--name", "delete", "--workflow-id", "proxy/default/bare")
	w.gone("bare")
	require.Empty(t, w.processes())
	require.Empty(t, w.files())
}

func TestAWorkerWaitsForANewNamespaceAndMakesItReady(t *testing.T) {
	t.Parallel()
	server, err := devserver.StartBare(t.Context())
	require.NoError(t, err)
	w := newWorldOn(t, server)
	w.namespace = "later"
	w.launch()
	require.Eventually(t, func() bool {
		return strings.Contains(w.log.String(), "temporal does not know the namespace yet")
	}, soon, tick, "%s", w.log)
	out, err := exec.CommandContext(t.Context(), server.CLI, "operator", "namespace", "create", "--namespace", w.namespace,
		"--address", server.Address).CombinedOutput()
	require.NoError(t, err, string(out))
	w.ready()
	require.Equal(t, 1, strings.Count(w.log.String(), "does not know the namespace"), w.log)
	status, body := w.put("a", spec)
	require.Equal(t, http.StatusCreated, status, string(body))
	w.running("a")
	w.temporal("describe", "--workflow-id", "installation/e2e")
	w.deleteAll()
}

func TestAProviderThatNobodyConfiguredIsAcceptedAndShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	status, body := w.put("later", v1.ProxySpec{Provider: "later", Port: 1})
	require.Equal(t, http.StatusCreated, status, string(body))
	require.Eventually(t, func() bool {
		c, _ := w.get("later").Status.Condition(v1.ConditionProvisioned)
		return c.Reason == v1.ReasonProviderNotConfigured
	}, soon, tick)
	require.Equal(t, v1.PhaseBlocked, w.get("later").Status.Phase)
	require.Empty(t, w.endpoints())
	w.deleteAll()
}

// Field report kubermatic/machine-controller#2080: what was missing is there, and
// somebody had to lend a hand.
func TestAProxyRunsSoonAfterItsProviderIsConfigured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.providers()
	status, body := w.put("a", v1.ProxySpec{Provider: "later", Port: 3128})
	require.Equal(t, http.StatusCreated, status, string(body))
	require.Eventually(t, func() bool {
		p := w.get("a")
		c, _ := p.Status.Condition(v1.ConditionProvisioned)
		return p.Status.Phase == v1.PhaseBlocked && c.Reason == v1.ReasonProviderNotConfigured
	}, soon, tick)

	w.configure("local", "Later") // a slip first
	require.Eventually(t, func() bool {
		return w.providers().Configuration.State == v1.ConfigurationRetained
	}, soon, tick, "%s", w.log)
	require.Equal(t, before.Items, w.providers().Items)
	w.configure("local", "later")
	p := w.running("a") // its own next look would be in an hour
	require.NotEmpty(t, p.Status.IP)
	after := w.providers()
	require.Equal(t, v1.ConfigurationLoaded, after.Configuration.State)
	require.Len(t, after.Items, 2)
	require.Contains(t, after.Items, before.Items[0], "it was kept")
	w.deleteAll()
}

func TestWithoutTemporalTheAPISaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	require.NoError(t, w.server.Stop())
	status, body := w.put("a", spec)
	require.Equal(t, http.StatusServiceUnavailable, status, string(body))
	var problem struct{ Type, Title, Detail string }
	require.NoError(t, json.Unmarshal(body, &problem))
	require.NotEmpty(t, problem.Type)
	status, _ = w.call(http.MethodGet, "/healthz", nil)
	require.Equal(t, http.StatusOK, status, "the process itself is well")
	require.Eventually(t, func() bool {
		status, _ := w.call(http.MethodGet, "/readyz", nil)
		return status == http.StatusServiceUnavailable
	}, soon, tick)
}

// deleteAll deletes every proxy and expects nothing to be left.
func (w *world) deleteAll() {
	w.t.Helper()
	for _, p := range w.list() {
		status, body := w.call(http.MethodDelete, path(p.Metadata.Name), nil)
		require.Equal(w.t, http.StatusAccepted, status, string(body))
	}
	for _, p := range w.list() {
		w.gone(p.Metadata.Name)
	}
	require.Eventually(w.t, func() bool { return len(w.list()) == 0 }, soon, tick)
	require.Empty(w.t, w.processes())
	require.Empty(w.t, w.files())
}

func (w *world) gone(name string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		status, _ := w.call(http.MethodGet, path(name), nil)
		return status == http.StatusNotFound
	}, soon, tick)
}

func (w *world) temporal(args ...string) {
	w.t.Helper()
	args = append([]string{"workflow"}, append(args, "--address", w.server.Address, "--namespace", w.namespace)...)
	out, err := exec.CommandContext(w.t.Context(), w.server.CLI, args...).CombinedOutput()
	require.NoError(w.t, err, string(out))
}
