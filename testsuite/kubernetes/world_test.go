//go:build integration && linux

package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/kubelab"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

// world is the built worker on a Temporal server, with a provider whose Pods are real.
type world struct {
	t   *testing.T
	api string // URL
	log string // path
}

// providersFile is the configuration of the provider: the restricted user, Debian's
// squid, and the ranges of this cluster.
const providersFile = `providers:
- name: kubernetes
  type: kubernetes
  kubernetes:
    kubeconfig: %s
    namespace: %s
    image: %s
    clusterRanges: [%s, %s]
`

func newWorld(t *testing.T, c *kubelab.Cluster, namespace string) *world {
	t.Helper()
	server, err := devserver.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	var port [3]int
	for i := range port {
		port[i], err = ports.Take()
		require.NoError(t, err)
	}
	require.NoError(t, kubelab.WriteKubeconfig(file("kubeconfig"), c.Config(user)))
	for name, text := range map[string]string{
		"providers.yaml": fmt.Sprintf(providersFile, file("kubeconfig"), namespace, kubelab.SquidImage,
			kubelab.WorldRange, kubelab.PodRange),
		"worker.yaml": fmt.Sprintf("installation: %s\nsteadyPoll: 1s\nprovidersFile: %s\n"+
			"api: {port: %d}\nmetrics: {port: %d}\necho: {port: %d, certificate: %s}\n",
			installation, file("providers.yaml"), port[0], port[1], port[2], file("echo.pem")),
	} {
		require.NoError(t, os.WriteFile(file(name), []byte(text), 0o600))
	}
	w := &world{t: t, api: fmt.Sprintf("http://127.0.0.1:%d", port[0]), log: file("worker.log")}
	w.start(file("worker.yaml"), server.Address)
	return w
}

// start runs the worker until the end of the test, and waits until it is ready.
func (w *world) start(config, temporal string) {
	w.t.Helper()
	root, err := devserver.Root()
	require.NoError(w.t, err)
	out, err := os.Create(w.log)
	require.NoError(w.t, err)
	worker := exec.Command(filepath.Join(root, "bin", "worker"), "--config", config)
	worker.Dir, worker.Stdout, worker.Stderr = filepath.Dir(config), out, out
	worker.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+temporal)
	require.NoError(w.t, worker.Start())
	w.t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
		_ = out.Close()
		if text, err := os.ReadFile(w.log); err == nil && w.t.Failed() {
			w.t.Logf("the worker: %s", text[max(0, len(text)-16<<10):])
		}
	})
	require.Eventually(w.t, func() bool {
		status, _ := w.call(http.MethodGet, "/readyz", nil)
		return status == http.StatusOK
	}, soon, tick)
}

// call returns status and body; status 0 when nobody listens.
func (w *world) call(method, path string, body any) (int, []byte) {
	raw, err := json.Marshal(body)
	require.NoError(w.t, err)
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.api+path, bytes.NewReader(raw))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	c := &http.Client{Timeout: 15 * time.Second}
	res, err := c.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	return res.StatusCode, out
}

// settled repeats a call that nobody has answered: a busy worker or Temporal may take
// longer than the API waits. repeated tells that an earlier one may have had its effect.
func (w *world) settled(method, path string, body any) (status int, answer []byte, repeated bool) {
	w.t.Helper()
	tries := 0
	require.Eventually(w.t, func() bool {
		tries++
		status, answer = w.call(method, path, body)
		return status != 0 && status != http.StatusServiceUnavailable && status != http.StatusGatewayTimeout
	}, soon, tick, "no answer to %s %s", method, path)
	return status, answer, tries > 1
}

func path(name string) string { return "/v1/namespaces/default/proxies/" + name }

// apply asks for a proxy.
func (w *world) apply(name string, at v1.Placement) {
	w.t.Helper()
	spec := v1.ProxySpec{Provider: providerName, Port: proxyPort, Placement: at}
	status, body, repeated := w.settled(http.MethodPut, path(name), map[string]any{"spec": spec})
	if repeated && status == http.StatusOK {
		return
	}
	require.Equal(w.t, http.StatusCreated, status, string(body))
}

// get returns a Proxy; one that cannot be read is empty.
func (w *world) get(name string) (p v1.Proxy) {
	if status, body := w.call(http.MethodGet, path(name), nil); status == http.StatusOK {
		require.NoError(w.t, json.Unmarshal(body, &p))
	}
	return p
}

// running waits until a proxy runs.
func (w *world) running(name string) (p v1.Proxy) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		p = w.get(name)
		return p.Status.Phase == v1.PhaseRunning && p.Status.IP != ""
	}, soon, tick, "%s does not run", name)
	return p
}

// remove deletes a proxy, and waits until it is gone.
func (w *world) remove(names ...string) {
	w.t.Helper()
	for _, name := range names {
		status, body, repeated := w.settled(http.MethodDelete, path(name), nil)
		if repeated && status == http.StatusNotFound {
			continue
		}
		require.Equal(w.t, http.StatusAccepted, status, string(body))
	}
	for _, name := range names {
		require.Eventually(w.t, func() bool {
			status, _ := w.call(http.MethodGet, path(name), nil)
			return status == http.StatusNotFound
		}, soon, tick, "%s is still there", name)
	}
}

// reasons are those of the events of a proxy, the oldest first.
func (w *world) reasons(name string) (all []string) {
	w.t.Helper()
	status, body, _ := w.settled(http.MethodGet, path(name)+"/timeline", nil)
	require.Equal(w.t, http.StatusOK, status, string(body))
	var list struct{ Items []v1.Event }
	require.NoError(w.t, json.Unmarshal(body, &list))
	for _, e := range list.Items {
		all = append(all, e.Reason)
	}
	return all
}
