package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/output"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

const (
	soon = 2 * time.Minute // generous: the machine may be busy
	tick = 100 * time.Millisecond
)

var bin string // holds worker, starter, gcefaked and temporal

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if bin, err = os.MkdirTemp("", "egressfleet-e2e-"); err == nil {
			defer func() { _ = os.RemoveAll(bin) }()
			err = build(bin)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// build makes the binaries as the Makefile does, and puts the Temporal CLI beside
// them, where the starter looks for it.
func build(dir string) error {
	root, err := devserver.Root()
	if err != nil {
		return err
	}
	cli, err := devserver.CLI()
	if err != nil {
		return err
	}
	if err := os.Symlink(cli, filepath.Join(dir, "temporal")); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", dir, "./worker", "./starter", "./testsuite/gcefake/gcefaked")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the binaries: %w\n%s", err, out)
	}
	return nil
}

// world is one Temporal server with one installation, whose worker can be killed.
type world struct {
	t         *testing.T
	server    *devserver.Server
	dir       string // of this world's files
	instances string
	api       int
	echo      int // port of the target for probes
	worker    *exec.Cmd
	ended     <-chan struct{} // closed when the worker has
	log       *output.Log
	namespace string // of Temporal
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server, err := devserver.Start(t.Context())
	require.NoError(t, err)
	return newWorldOn(t, server)
}

func newWorldOn(t *testing.T, server *devserver.Server) *world {
	t.Helper()
	t.Cleanup(func() { _ = server.Stop() })
	dir := t.TempDir()
	w := &world{
		t: t, server: server, dir: dir, instances: filepath.Join(dir, "instances"), api: freePort(t), echo: freePort(t),
		namespace: "default",
	}
	t.Cleanup(w.killInstances)
	w.configure("local")
	w.write("worker.yaml", fmt.Sprintf("installation: e2e\nsteadyPoll: 1s\n"+
		"providersFile: %s\napi:\n  port: %d\nmetrics:\n  port: %d\necho:\n  port: %d\n  certificate: %s\n",
		filepath.Join(dir, "providers.yaml"), w.api, freePort(t), w.echo, w.certificate()))
	return w
}

// configure lists providers of the type local.
func (w *world) configure(names ...string) {
	text := "providers:\n"
	for _, name := range names {
		text += "- {name: " + name + ", type: local, local: {dir: " + w.instances + "}}\n"
	}
	w.write("providers.yaml", text)
}

// providers returns what the API tells of them; empty where it cannot be read.
func (w *world) providers() (list v1.ProviderList) {
	if status, body := w.call(http.MethodGet, "/v1/providers", nil); status == http.StatusOK {
		require.NoError(w.t, json.Unmarshal(body, &list))
	}
	return list
}

// certificate is the file by which a prober knows the echo target.
func (w *world) certificate() string { return filepath.Join(w.dir, "echo.pem") }

func (w *world) write(name, content string) {
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600))
}

func (w *world) read(name string) string {
	raw, err := os.ReadFile(filepath.Join(w.dir, name))
	require.NoError(w.t, err)
	return string(raw)
}

// start runs the worker and waits until it is ready.
func (w *world) start() {
	w.t.Helper()
	w.launch()
	w.ready()
}

func (w *world) launch() {
	w.t.Helper()
	w.log = new(output.Log)
	w.worker = exec.Command(filepath.Join(bin, "worker"), "--config", filepath.Join(w.dir, "worker.yaml"))
	w.worker.Dir = w.dir // where a sample keeps its instances
	w.worker.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+w.server.Address, "TEMPORAL_NAMESPACE="+w.namespace)
	w.worker.Stdout, w.worker.Stderr = w.log, w.log
	require.NoError(w.t, w.worker.Start())
	worker, ended := w.worker, make(chan struct{})
	go func() { defer close(ended); _ = worker.Wait() }()
	w.ended = ended
	w.t.Cleanup(func() { _ = worker.Process.Kill(); <-ended })
}

// ready waits until the worker is.
func (w *world) ready() {
	w.t.Helper()
	ready := time.After(soon)
	for {
		if status, _ := w.call(http.MethodGet, "/readyz", nil); status == http.StatusOK {
			return
		}
		select {
		case <-w.ended:
			require.Fail(w.t, "the worker ended before it was ready", w.log.String())
		case <-ready:
			_ = w.worker.Process.Signal(syscall.SIGQUIT) // what it is doing belongs to the log
			<-w.ended
			require.Fail(w.t, "the worker was not ready in time", w.log.String())
		case <-time.After(tick):
		}
	}
}

// kill ends the worker as a crash does.
func (w *world) kill() {
	w.t.Helper()
	require.NoError(w.t, w.worker.Process.Kill())
	<-w.ended
}

// call returns status and body; status 0 when nobody listens.
func (w *world) call(method, path string, body any) (int, []byte) {
	raw, err := json.Marshal(body)
	require.NoError(w.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	url := fmt.Sprintf("http://127.0.0.1:%d%s", w.api, path)
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
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

func path(name string) string { return "/v1/namespaces/default/proxies/" + name }

func (w *world) put(name string, spec v1.ProxySpec) (int, []byte) {
	return w.call(http.MethodPut, path(name), map[string]any{"spec": spec})
}

// get returns a Proxy; one that cannot be read is empty.
func (w *world) get(name string) (p v1.Proxy) {
	if status, body := w.call(http.MethodGet, path(name), nil); status == http.StatusOK {
		require.NoError(w.t, json.Unmarshal(body, &p))
	}
	return p
}

func (w *world) list() []v1.Proxy {
	status, body := w.call(http.MethodGet, "/v1/namespaces/default/proxies", nil)
	if status != http.StatusOK {
		return nil
	}
	var out struct{ Items []v1.Proxy }
	require.NoError(w.t, json.Unmarshal(body, &out))
	return out.Items
}

// endpoints returns what discovery hands out as text, line by line.
func (w *world) endpoints() []string {
	status, body := w.call(http.MethodGet, "/v1/discovery?format=txt", nil)
	if status != http.StatusOK {
		return nil
	}
	return strings.Fields(string(body))
}

// running waits until a proxy runs, and returns it.
func (w *world) running(name string) (p v1.Proxy) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		p = w.get(name)
		return p.Status.Phase == v1.PhaseRunning
	}, soon, tick, "%s", w.log)
	return p
}

// processes returns the instances' processes of this world by their folder's name.
func (w *world) processes() map[string][]int { return processesUnder(w.t, w.instances) }

// files returns every file below the instances' folder.
func (w *world) files() (files []string) {
	_ = filepath.WalkDir(w.instances, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	return files
}

// killInstances ends what a failed test has left.
func (w *world) killInstances() {
	for _, pids := range w.processes() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// processesUnder finds processes by the folder that their command line names, which
// ends in the instance's name.
func processesUnder(t *testing.T, dir string) map[string][]int {
	t.Helper()
	found := map[string][]int{}
	for pid, args := range commandLines(t) {
		for _, arg := range args {
			if strings.HasPrefix(arg, dir+string(filepath.Separator)) {
				name := filepath.Base(arg)
				found[name] = append(found[name], pid)
			}
		}
	}
	return found
}

func commandLines(t *testing.T) map[int][]string {
	t.Helper()
	all := map[int][]string{}
	if runtime.GOOS != "linux" {
		out, err := exec.CommandContext(t.Context(), "ps", "-axo", "pid=,command=").Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 1 {
				pid, err := strconv.Atoi(f[0])
				require.NoError(t, err)
				all[pid] = f[1:]
			}
		}
		return all
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || len(raw) == 0 {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		require.NoError(t, err)
		all[pid] = strings.Split(strings.Trim(string(raw), "\x00"), "\x00")
	}
	return all
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := ports.Take()
	require.NoError(t, err)
	return port
}
