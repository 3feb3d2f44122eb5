package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// engine starts a Compute Engine of this machine, which outlives workers and servers of
// Temporal, and returns where it listens.
func engine(t *testing.T) string {
	t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "gcefaked"), "-listen", at, "-task", "200ms")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, soon, tick)
	return at
}

// lost is the loss of Temporal's database: another one takes its place, and a worker that
// knows nothing but its configuration.
func (w *world) lost() {
	w.t.Helper()
	w.kill()
	require.NoError(w.t, w.server.Stop())
	server, err := devserver.Start(w.t.Context())
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = server.Stop() })
	w.server = server
	w.start()
}

// identities are the UID and the instance of each proxy.
func (w *world) identities() map[string]string {
	have := map[string]string{}
	for _, p := range w.list() {
		if p.Status.Phase == v1.PhaseRunning {
			have[p.Metadata.Name] = p.Metadata.UID + " " + p.Status.ProviderID
		}
	}
	return have
}

// The commands of docs/runbooks/lost-database.md, on two kinds of backends.
func TestALostDatabaseIsBroughtBackByTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("providers.yaml", w.read("providers.yaml")+fmt.Sprintf("- name: gcp\n  type: gcp\n"+
		"  gcp: {project: example-proj, zones: [us-central1-a, us-central1-b], endpoint: \"http://%s\", "+
		"insecureNoAuthentication: true, "+
		"image: ubuntu-os-cloud/family/ubuntu-2404-lts-amd64}\n", engine(t)))
	w.start()
	const secret = "#cloud-config\npassword: hunter2\n"
	cloud := v1.ProxySpec{
		Provider: "gcp", Port: 3128, Placement: v1.Placement{Zone: "us-central1-b", MachineType: "e2-small"},
		CloudInit: v1.CloudInit{Inline: secret},
	}
	for name, s := range map[string]v1.ProxySpec{"a": spec, "b": spec, "c": cloud} {
		status, body := w.put(name, s)
		require.Equal(t, http.StatusCreated, status, string(body))
	}
	for _, name := range []string{"a", "b", "c"} {
		w.running(name)
	}
	before, processes := w.identities(), w.processes()

	w.lost()
	require.Empty(t, w.list())
	require.Contains(t, w.starter("adopt"), "nothing was adopted; --yes adopts these, 3 in all")
	require.Empty(t, w.list())
	shown := w.starter("adopt", "--yes")
	require.Contains(t, shown, "adopted  default/c")
	require.NotContains(t, shown, "hunter2")
	require.Eventually(t, func() bool { return len(w.identities()) == 3 }, soon, tick, "%s", w.log)
	require.Equal(t, before, w.identities())
	require.Equal(t, processes, w.processes())
	require.Contains(t, w.starter("explain", "c"), v1.ReasonCloudInitUnknown)
	require.Contains(t, w.starter("adopt", "--yes"), "local     2       2       0", "nothing is left to do")

	spec, err := json.Marshal(v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: "c"}, Spec: cloud})
	require.NoError(t, err)
	w.write("c.json", string(spec))
	w.starter("apply", "-f", filepath.Join(w.dir, "c.json"))
	require.Eventually(t, func() bool {
		p := w.get("c")
		_, adopted := p.Status.Condition(v1.ConditionAdopted)
		return !adopted && p.Status.ObservedGeneration == p.Metadata.Generation
	}, soon, tick)
	require.Equal(t, before["c"], w.identities()["c"], "the same spec replaces nothing")
	require.NotContains(t, w.log.String(), "hunter2")
	w.deleteAll()
}
