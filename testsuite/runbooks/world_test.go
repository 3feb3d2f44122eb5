//go:build tools

package runbooks_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	"github.com/egressfleet/egressfleet/testsuite/guides"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

const (
	soon = 2 * time.Minute // generous: the machine may be busy
	// typedWithin bounds a block of a page, some of which run dozens of commands.
	typedWithin = 10 * time.Minute
	tick        = 200 * time.Millisecond
)

// world is a worker with two providers that ask for credentials, whose histories are
// encrypted and whose API wants tokens.
type world struct {
	t            *testing.T
	dir, root    string
	server       *devserver.Process
	gate         *gate
	kubernetes   *kubeapi.Server
	api, metrics int
	token        string        // of the API and of its codec endpoint
	log          *bytes.Buffer // of the worker
	end          func()        // kills it
	ended        <-chan struct{}
}

const workerConfig = `installation: rotation
roles: [worker, api]
providersFile: %[1]s/providers.yaml
api: {port: %[2]d, tokensFile: %[1]s/tokens.yaml}
metrics: {port: %[3]d}
echo: {port: 0}
codec: {keys: %[1]s/keys, tokensFile: %[1]s/codec-tokens}
check: {interval: 1h}
`

const providersConfig = `providers:
- name: gcp
  type: gcp
  gcp:
    project: ` + gcefake.CapturedProject + `
    zones: [us-central1-a]
    image: ubuntu-os-cloud/family/ubuntu-2404-lts-amd64
    machineType: e2-small
    endpoint: %s
    credentialsFile: %s
- name: kubernetes
  type: kubernetes
  kubernetes: {namespace: egress, clusterRanges: [10.244.0.0/16], kubeconfig: %s}
`

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := devserver.Root()
	require.NoError(t, err)
	w := &world{t: t, dir: t.TempDir(), root: root, gate: newGate(), api: port(t), metrics: port(t), token: "first-of-all"}
	for _, name := range []string{"worker", "starter", "temporal"} {
		require.FileExists(t, filepath.Join(root, "bin", name), "`make test-runbooks` builds it")
	}
	require.NoError(t, os.Symlink(filepath.Join(root, "bin"), filepath.Join(w.dir, "bin")))
	cloud := httptest.NewServer(w.gate)
	t.Cleanup(cloud.Close)
	w.kubernetes = kubeapi.New(t, kubeapi.Rules(t, filepath.Join(root, "deploy/kubernetes/rbac.yaml"), "rotation"))
	w.write("gcp.json", serviceAccount(t, "first"))
	w.mount("kubernetes", w.kubeconfig(kubeapi.Token))
	w.write("providers.yaml", fmt.Sprintf(providersConfig, cloud.URL, w.path("gcp.json"), w.path("kubernetes/key")))
	w.write("tokens.yaml", "tokens:\n- {name: first, sha256: "+sum(w.token)+", scopes: [admin]}\n")
	w.write("codec-tokens", sum(w.token)+"\n")
	w.shell("mkdir keys; (umask 077; openssl rand -base64 32 > keys/2026-11)")
	w.write("worker.yaml", fmt.Sprintf(workerConfig, w.dir, w.api, w.metrics))
	w.server, err = devserver.NewProcess(w.path("temporal.db"))
	require.NoError(t, err)
	require.NoError(t, w.server.Start(t.Context()))
	t.Cleanup(func() { _ = w.server.End(syscall.SIGKILL) })
	w.start()
	return w
}

func port(t *testing.T) int {
	t.Helper()
	p, err := ports.Take()
	require.NoError(t, err)
	return p
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.path(name), []byte(text), 0o600))
}

// mount puts a file "key" into a folder as a kubelet does: all of a Secret is swapped at
// once, by a link.
func (w *world) mount(folder, text string) {
	w.t.Helper()
	at := w.path(folder)
	require.NoError(w.t, os.MkdirAll(at, 0o700))
	fresh, err := os.MkdirTemp(at, "..")
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(filepath.Join(fresh, "key"), []byte(text), 0o600))
	require.NoError(w.t, os.Symlink(filepath.Base(fresh), filepath.Join(at, "..data_tmp")))
	require.NoError(w.t, os.Rename(filepath.Join(at, "..data_tmp"), filepath.Join(at, "..data")))
	if _, err := os.Lstat(filepath.Join(at, "key")); err != nil {
		require.NoError(w.t, os.Symlink("..data/key", filepath.Join(at, "key")))
	}
}

// start starts the worker and waits until it is ready.
func (w *world) start() {
	w.t.Helper()
	w.log = &bytes.Buffer{}
	cmd := exec.Command(w.path("bin/worker"), "--config", w.path("worker.yaml"))
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+w.server.Address)
	cmd.Stdout, cmd.Stderr, cmd.Dir = w.log, w.log, w.dir
	require.NoError(w.t, cmd.Start())
	ended, log := make(chan struct{}), w.log
	go func() { defer close(ended); _ = cmd.Wait() }()
	w.end, w.ended = func() { _ = cmd.Process.Kill(); <-ended }, ended
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if w.t.Failed() {
			w.t.Logf("worker:\n%s", log)
		}
	})
	require.Eventually(w.t, func() bool {
		_, err := w.try("bin/worker ready --config worker.yaml")
		return err == nil || !w.runs()
	}, soon, tick, "the worker is ready")
	require.True(w.t, w.runs(), "the worker has ended in its start")
}

// runs reports whether the worker has not ended.
func (w *world) runs() bool {
	select {
	case <-w.ended:
		return false
	default:
		return true
	}
}

// shell runs a line of bash where the pages are typed, and returns what it says.
func (w *world) shell(line string, env ...string) (out string) {
	w.t.Helper()
	out, err := w.try(line, env...)
	require.NoError(w.t, err, "%s\n%s", line, out)
	return out
}

func (w *world) try(line string, env ...string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), typedWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = w.dir
	address := "127.0.0.1:0"
	if w.server != nil {
		address = w.server.Address
	}
	cmd.Env = append(append(os.Environ(), "TEMPORAL_ADDRESS="+address, "K="+w.dir, "TOKEN="+w.token,
		"EGRESSFLEET_API_TOKEN="+w.token, fmt.Sprintf("EGRESSFLEET_API_PORT=%d", w.api),
		fmt.Sprintf("API=http://127.0.0.1:%d", w.api), fmt.Sprintf("METRICS=http://127.0.0.1:%d", w.metrics)), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *world) typed(page, words string) string {
	w.t.Helper()
	return typed(w.t, w.root, page, words)
}

// typed is the block of a page in which the words are; it is marked as sh.
func typed(t *testing.T, root, page, words string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/runbooks", page))
	require.NoError(t, err)
	var found []string
	for _, block := range guides.Blocks(string(text)) {
		if block.Language == "sh" && strings.Contains(block.Code, words) {
			found = append(found, block.Code)
		}
	}
	require.Len(t, found, 1, "blocks of %s with %q", page, words)
	return found[0]
}

// status is that of a request with a token.
func (w *world) status(token string) int {
	w.t.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%d/v1/discovery", w.api)
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
	require.NoError(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	require.NoError(w.t, res.Body.Close())
	return res.StatusCode
}

// want applies a proxy, and waits for its phase.
func (w *world) want(name, provider, phase string) {
	w.t.Helper()
	w.write(name+".json", fmt.Sprintf(
		`{"metadata": {"namespace": "default", "name": %q}, "spec": {"provider": %q, "port": 3128}}`, name, provider))
	w.shell("bin/starter apply -f "+name+".json", keysOf(w.dir))
	w.reaches(name, phase)
}

func (w *world) reaches(name, phase string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		out, err := w.try("bin/starter get "+name, keysOf(w.dir))
		return err == nil && strings.Contains(out, phase)
	}, soon, tick, "%s becomes %s", name, phase)
}

func keysOf(dir string) string { return "EGRESSFLEET_CODEC_KEYS=" + filepath.Join(dir, "keys") }
