//go:build tools

package alerts_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	prometheus "github.com/prometheus/client_golang/api"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"sigs.k8s.io/yaml"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

const (
	soon         = time.Minute // generous: the machine may be busy
	tick         = 200 * time.Millisecond
	installation = "alerts"
)

// world is a fleet in three processes, as production has it, and the Prometheus that
// looks at it.
type world struct {
	t             *testing.T
	dir           string
	server        *devserver.Process
	temporal      sdk.Client
	fleet         *fleet.Client
	cloud, other  *gcefake.Server
	api, echo     int
	scraped       []int // ports
	prometheus    promapi.API
	worker        *exec.Cmd
	workerMetrics int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), api: port(t), echo: port(t), workerMetrics: port(t),
		cloud: gcefake.Start(t, gcefake.Options{}), other: gcefake.Start(t, gcefake.Options{}),
	}
	w.useBuilt()
	t.Cleanup(w.killInstances)
	w.startTemporal()
	w.writeProviders()
	w.run("api", w.roleOn("api", port(t)))
	w.worker = w.run("worker", w.roleOn("worker", w.workerMetrics))
	w.run("outside", w.roleOn("outside", port(t)))
	w.startPrometheus()
	return w
}

func port(t *testing.T) int {
	t.Helper()
	p, err := ports.Take()
	require.NoError(t, err)
	return p
}

// useBuilt puts the binaries where the pages of the runbooks have them.
func (w *world) useBuilt() {
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	require.NoError(w.t, err)
	for _, name := range []string{"worker", "starter", "temporal"} {
		require.FileExists(w.t, filepath.Join(bin, name), "`make test-alerts` builds it")
	}
	require.NoError(w.t, os.Symlink(bin, filepath.Join(w.dir, "bin")))
}

func (w *world) startTemporal() {
	var err error
	w.server, err = devserver.NewProcess(filepath.Join(w.dir, "temporal.db"))
	require.NoError(w.t, err)
	require.NoError(w.t, w.server.Start(w.t.Context()))
	w.t.Cleanup(func() { _ = w.server.End(syscall.SIGKILL) })
	w.temporal, err = sdk.DialContext(w.t.Context(), sdk.Options{HostPort: w.server.Address, Logger: devserver.Quiet()})
	require.NoError(w.t, err)
	w.t.Cleanup(w.temporal.Close)
	w.fleet = fleet.New(w.temporal, installation)
}

func (w *world) write(name, text string) (path string) {
	path = filepath.Join(w.dir, name)
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *world) writeProviders() {
	gcp := func(name string, s *gcefake.Server) string {
		return "- {name: " + name + ", type: gcp, gcp: {project: " + gcefake.CapturedProject +
			", zones: [us-central1-a, us-central1-b, us-central1-c], endpoint: \"" + s.URL +
			"\", insecureNoAuthentication: true}}\n"
	}
	w.write("providers.yaml", "providers:\n- {name: local, type: local, local: {dir: "+
		filepath.Join(w.dir, "instances")+"}}\n"+gcp("gcp", w.cloud)+gcp("other", w.other))
}

// roleOn writes the configuration of a process with one role.
func (w *world) roleOn(role string, metrics int) (file string) {
	w.scraped = append(w.scraped, metrics)
	return w.write(role+".yaml", fmt.Sprintf("installation: %s\nroles: [%s]\nproviders"+
		"File: %s\nmetrics: {port: %d}\napi: {port: %d}\necho: {port: %d, certificate: %s}\n"+
		"health: {target: \"127.0.0.1:%d\"}\ndrift: {interval: 10s}\ncheck: {interval: 5s}\n",
		installation, role, filepath.Join(w.dir, "providers.yaml"), metrics, w.api, w.echo,
		filepath.Join(w.dir, "echo.pem"), w.echo))
}

// run starts a process of the worker's binary, which the test ends.
func (w *world) run(name, file string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.dir, "bin", "worker"), "--config", file)
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+w.server.Address)
	w.start(name, cmd)
	ready := exec.Command(filepath.Join(w.dir, "bin", "worker"), "ready", "--config", file)
	ready.Env = cmd.Env
	require.Eventually(w.t, func() bool {
		again := *ready
		return (&again).Run() == nil
	}, soon, tick, "%s is ready", name)
	return cmd
}

func (w *world) start(name string, cmd *exec.Cmd) {
	var log bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &log, &log
	require.NoError(w.t, cmd.Start(), name)
	w.t.Cleanup(func() {
		kill(cmd)
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", name, log.String())
		}
	})
}

// kill ends a process, which may have ended already.
func kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// killInstances ends the proxies of the provider local that are left: they outlive their
// worker. Each names its folder in its command line.
func (w *world) killInstances() {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(w.t, err)
	for _, file := range files {
		line, _ := os.ReadFile(file) // one that has gone meanwhile is nobody's
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && strings.Contains(string(line), filepath.Join(w.dir, "instances")+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// startPrometheus gives a Prometheus the rules, which fire at once, and the processes.
func (w *world) startPrometheus() {
	w.write("rules.yaml", w.hasty())
	targets := make([]string, len(w.scraped))
	for i, p := range w.scraped {
		targets[i] = fmt.Sprintf("'127.0.0.1:%d'", p)
	}
	w.write("prometheus.yml", "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n"+
		"scrape_configs: [{job_name: egressfleet, static_configs: [{targets: ["+strings.Join(targets, ", ")+"]}]}]\n")
	at := fmt.Sprintf("127.0.0.1:%d", port(w.t))
	w.start("prometheus", exec.Command("prometheus", "--config.file", filepath.Join(w.dir, "prometheus.yml"),
		"--storage.tsdb.path", filepath.Join(w.dir, "tsdb"), "--web.listen-address", at))
	client, err := prometheus.NewClient(prometheus.Config{Address: "http://" + at})
	require.NoError(w.t, err)
	w.prometheus = promapi.NewAPI(client)
	require.Eventually(w.t, func() bool {
		found, err := w.query(`up == 1`)
		return err == nil && len(found) == len(w.scraped)
	}, soon, tick, "Prometheus sees every process")
}

// hasty are the rules as they are, but that none waits before it fires.
func (w *world) hasty() string {
	var all rules
	read(w.t, rulesFile, &all)
	for i := range all.Groups[0].Rules {
		all.Groups[0].Rules[i].For = "0s"
	}
	text, err := yaml.Marshal(all)
	require.NoError(w.t, err)
	return string(text)
}

// query asks Prometheus what is true now.
func (w *world) query(expr string) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	value, _, _, err := w.prometheus.Query(ctx, expr, time.Now())
	if err != nil {
		return nil, err
	}
	found, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("%s: is a %s", expr, value.Type())
	}
	return found, nil
}

// firing are the labels of what an alert fires for.
func (w *world) firing(alert string) (all []model.Metric) {
	found, err := w.query(firing(alert))
	if err != nil {
		return nil
	}
	for _, sample := range found {
		all = append(all, sample.Metric)
	}
	return all
}

func firing(alert string) string { return `ALERTS{alertname="` + alert + `", alertstate="firing"}` }

func (w *world) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", w.api, path) }

// want makes a proxy; spec is JSON without the braces.
func (w *world) want(name, provider, spec string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"spec": {"provider": %q, "port": 3128%s}}`, provider, spec)
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPut,
		w.url("/v1/namespaces/default/proxies/"+name), strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	require.NoError(w.t, res.Body.Close())
	require.Equal(w.t, http.StatusCreated, res.StatusCode, name)
}

// phase is empty for a proxy that is gone.
func (w *world) phase(name string) string {
	p, err := w.fleet.Get(w.t.Context(), "default", name)
	if err != nil {
		return ""
	}
	return string(p.Status.Phase)
}

func (w *world) reaches(name, phase string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.phase(name) == phase }, soon, tick, "%s becomes %q", name, phase)
}
