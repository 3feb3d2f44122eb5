//go:build tools

package traces

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/jaeger"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

const (
	soon = time.Minute // generous: the machine may be busy
	tick = 100 * time.Millisecond
)

// world is a worker with three providers, and the Jaeger that it tells.
type world struct {
	t            *testing.T
	dir          string
	jaeger       *jaeger.Server
	api, metrics int
	log          bytes.Buffer // of the worker; read once it has ended
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), jaeger: jaeger.Start(t), api: port(t), metrics: port(t)}
	server, err := devserver.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	w.writeConfiguration()
	w.startWorker(server.Address)
	return w
}

func port(t *testing.T) int {
	t.Helper()
	p, err := ports.Take()
	require.NoError(t, err)
	return p
}

func (w *world) write(name, text string) (path string) {
	path = filepath.Join(w.dir, name)
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// run starts a process that the test ends.
func (w *world) run(cmd *exec.Cmd, log *bytes.Buffer) {
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, log, log
	require.NoError(w.t, cmd.Start(), "`make test-traces` builds what is needed")
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if w.t.Failed() {
			w.t.Log(log.String())
		}
	})
}

func (w *world) writeConfiguration() {
	cloud := gcefake.Start(w.t, gcefake.Options{})
	cluster := kubeapi.New(w.t, kubeapi.Rules(w.t, "../../deploy/kubernetes/rbac.yaml", "traces"))
	kubeconfig := filepath.Join(w.dir, "kubeconfig")
	cluster.WriteKubeconfig(w.t, kubeconfig, kubeapi.Token)
	file := w.write("providers.yaml", "providers:\n"+
		"- {name: local, type: local, local: {dir: "+filepath.Join(w.dir, "instances")+"}}\n"+
		"- {name: gcp, type: gcp, gcp: {project: "+gcefake.CapturedProject+", zones: [us-central1-a], "+
		"endpoint: \""+cloud.URL+"\", insecureNoAuthentication: true}}\n"+
		"- {name: kubernetes, type: kubernetes, kubernetes: {namespace: egress, kubeconfig: "+kubeconfig+
		", clusterRanges: [10.244.0.0/16]}}\n")
	w.write("worker.yaml", fmt.Sprintf("installation: traces\nsteadyPoll: 1s\nproviders"+
		"File: %s\nlog: {level: debug}\napi: {port: %d}\nmetrics: {port: %d}\necho: {port: 0}\n", file, w.api, w.metrics))
}

func (w *world) startWorker(temporal string) {
	root, err := devserver.Root()
	require.NoError(w.t, err)
	build := exec.CommandContext(w.t.Context(), "go", "build", "-o", filepath.Join(w.dir, "worker"), "./worker")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(w.t, err, string(out))
	cmd := exec.Command(filepath.Join(w.dir, "worker"), "--config", filepath.Join(w.dir, "worker.yaml"))
	cmd.Env = append(append(os.Environ(), "TEMPORAL_ADDRESS="+temporal), w.jaeger.Env()...)
	w.run(cmd, &w.log)
	require.Eventually(w.t, func() bool {
		status, _ := w.ask(http.MethodGet, w.url("/readyz"), "")
		return status == http.StatusOK
	}, soon, tick, "the worker is ready")
}

func (w *world) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", w.api, path) }

// ask returns status and body; status 0 when nobody listens.
func (w *world) ask(method, url, body string) (int, string) {
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+sentinel)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	return res.StatusCode, string(raw)
}
