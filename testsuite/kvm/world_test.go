//go:build integration && linux

package kvm

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/jaeger"
	"github.com/egressfleet/egressfleet/testsuite/kvmlab"
	"github.com/egressfleet/egressfleet/testsuite/output"
	"github.com/egressfleet/egressfleet/workflows/health"
)

const (
	proxyName = "scene"
	// The network is the run's own: no port is taken.
	apiPort, metricsPort, echoPort = 18080, 19464, 18443
)

// world is a worker as it is shipped, on a Temporal server and the hosts of the lab.
type world struct {
	t *testing.T
	*bench
	dir   string
	fleet *fleet.Client
	roots *x509.CertPool // whom the target's certificate is signed by
	log   *output.Log
	// jaeger has the traces of what is asked.
	jaeger *jaeger.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, bench: newBench(t), dir: t.TempDir(), log: new(output.Log), jaeger: jaeger.Start(t)}
	server, err := devserver.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	c, err := client.Dial(client.Options{HostPort: server.Address, Logger: devserver.Quiet()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w.fleet = fleet.New(c, installation)
	w.serveTarget()
	w.configure()
	w.start(server)
	return w
}

// serveTarget serves what proxies are asked for.
func (w *world) serveTarget() {
	server, err := echo.New(kvmlab.TargetIP)
	require.NoError(w.t, err)
	w.roots = server.Roots()
	require.NoError(w.t, server.WriteCertificate(w.file("target.pem")))
	l, err := new(net.ListenConfig).Listen(w.t.Context(), "tcp", kvmlab.TargetIP+":443")
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, slog.New(slog.DiscardHandler)) }()
	w.t.Cleanup(func() { cancel(); require.NoError(w.t, <-ended) })
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

func (w *world) configure() {
	list, err := json.Marshal(map[string]any{
		"providers": []any{map[string]any{"name": providerName, "type": "kvm", "kvm": w.cfg}},
	}) // JSON is YAML
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(w.file("providers.yaml"), list, 0o600))
	text := fmt.Sprintf("installation: %s\nprovidersFile: %s\nsteadyPoll: 2s\napi: {port: %d}\nmetrics: {port: %d}\n"+
		"echo: {port: %d}\nhealth: {target: %q}\n",
		installation, w.file("providers.yaml"), apiPort, metricsPort, echoPort, kvmlab.TargetIP+":443")
	require.NoError(w.t, os.WriteFile(w.file("worker.yaml"), []byte(text), 0o600))
}

// start runs the worker until the test ends, and waits until it is ready.
func (w *world) start(server *devserver.Server) {
	root, err := devserver.Root()
	require.NoError(w.t, err)
	cmd := exec.Command(filepath.Join(root, "bin", "worker"), "--config", w.file("worker.yaml"))
	// The target's certificate is one that the system does not trust.
	cmd.Env = append(append(os.Environ(), "TEMPORAL_ADDRESS="+server.Address, "SSL_CERT_FILE="+w.file("target.pem")),
		w.jaeger.Env()...)
	cmd.Stdout, cmd.Stderr = w.log, w.log
	require.NoError(w.t, cmd.Start(), "build it with `make build`")
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if w.t.Failed() {
			w.t.Log(w.log)
		}
	})
	require.Eventually(w.t, func() bool {
		status, _ := w.call(http.MethodGet, "/readyz", nil)
		return status == http.StatusOK
	}, soon, tick, "%s", w.log)
}

func pathOf(name string) string { return "/v1/namespaces/default/proxies/" + name }

// call returns status and body; status 0 when nobody listens.
func (w *world) call(method, path string, body any) (int, []byte) {
	raw, err := json.Marshal(body)
	require.NoError(w.t, err)
	ctx, cancel := context.WithTimeout(w.t.Context(), soon)
	defer cancel()
	at := fmt.Sprintf("http://127.0.0.1:%d%s", apiPort, path)
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(raw))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	return res.StatusCode, out
}

// get returns the Proxy; one that cannot be read is empty.
func (w *world) get() (p v1.Proxy) {
	if status, body := w.call(http.MethodGet, pathOf(proxyName), nil); status == http.StatusOK {
		require.NoError(w.t, json.Unmarshal(body, &p))
	}
	return p
}

// endpoints are what discovery hands out.
func (w *world) endpoints() []string {
	status, body := w.call(http.MethodGet, "/v1/discovery?format=txt", nil)
	require.Equal(w.t, http.StatusOK, status, string(body))
	return strings.Fields(string(body))
}

func (w *world) discovered(endpoint string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		list := w.endpoints()
		return len(list) == 1 && list[0] == endpoint
	}, soon, tick, "%s", w.log)
}

// probe runs a health round.
func (w *world) probe() {
	w.t.Helper()
	var r health.Result
	require.NoError(w.t, w.fleet.RunSweep(w.t.Context(), fleet.HealthRound(), health.Input{}, &r), "%s", w.log)
	require.Empty(w.t, r.Faults)
}

// healthy runs health rounds until the proxy passes: its guest takes its time to boot.
func (w *world) healthy() v1.Proxy {
	w.t.Helper()
	late := time.NewTimer(bootWithin)
	defer late.Stop()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		p := w.get()
		if p.Status.Phase == v1.PhaseRunning {
			w.probe()
			p = w.get()
		}
		if c, _ := p.Status.Condition(v1.ConditionHealthy); c.Status == v1.ConditionTrue {
			return p
		}
		select {
		case <-every.C:
		case <-late.C:
			require.Fail(w.t, "not healthy", "after %s: %+v\n%s", bootWithin, p.Status, w.log)
		}
	}
}

// bootWithin is how long a Debian may take under emulation on a busy machine.
const bootWithin = 6 * time.Minute

// fetch asks the target through a proxy.
func (w *world) fetch(proxy string) string {
	w.t.Helper()
	via, err := url.Parse(proxy)
	require.NoError(w.t, err)
	transport := &http.Transport{
		Proxy: http.ProxyURL(via), TLSClientConfig: &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport, Timeout: soon}).Get("https://" + kvmlab.TargetIP + "/")
	require.NoError(w.t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, res.StatusCode, string(body))
	return string(body)
}
