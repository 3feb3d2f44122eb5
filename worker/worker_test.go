package main_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/testsuite/output"
	worker "github.com/egressfleet/egressfleet/worker"
)

// environment is the TEMPORAL_* variables of a test.
type environment map[string]string

func (e environment) LookupEnv(key string) (string, bool) { v, ok := e[key]; return v, ok }

func (e environment) Environ() []string {
	var lines []string
	for k, v := range e {
		lines = append(lines, k+"="+v)
	}
	return lines
}

// free is a port that nothing listens on.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// settings are those of a process that only serves the API, on free ports.
func settings(temporal int) config.Config {
	return config.Config{
		Installation: "test", Roles: []config.Role{config.RoleAPI},
		Temporal: config.Temporal{Host: "127.0.0.1", Port: temporal, Namespace: "default"},
		API:      config.API{Listen: config.Listen{Host: "127.0.0.1"}}, Metrics: config.Listen{Host: "127.0.0.1"},
		Log: config.Log{Format: config.FormatText}, MaxConcurrentActivities: 1, StickyCacheSize: 1,
	}
}

// quiet is an environment that says nothing of Temporal.
func quiet() environment {
	return environment{"TEMPORAL_CONFIG_FILE": os.DevNull, "TEMPORAL_API_KEY": ""}
}

// temporal answers the first call of every client, and refuses when it is told to.
type temporal struct {
	workflowservice.UnimplementedWorkflowServiceServer
	refuse error
}

func (s *temporal) GetSystemInfo(
	context.Context, *workflowservice.GetSystemInfoRequest,
) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, s.refuse
}

// serve returns the port of a Temporal that knows no more than that.
func serve(t *testing.T, s *temporal, options ...grpc.ServerOption) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(options...)
	workflowservice.RegisterWorkflowServiceServer(server, s)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().(*net.TCPAddr).Port
}

func TestATemporalThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	port := free(t)
	var out output.Log
	err := worker.Run(t.Context(), settings(port), worker.Options{
		Log: &out, Environment: quiet(), DialPatience: 100 * time.Millisecond,
	})
	require.ErrorContains(t, err, "temporal at 127.0.0.1:"+strconv.Itoa(port)+" (from temporal.host and temporal.port, "+
		"EGRESSFLEET_TEMPORAL_PORT; TEMPORAL_ADDRESS is not set) cannot be reached within 100ms")
	require.Contains(t, out.String(), "temporal cannot be reached yet")
	require.Contains(t, out.String(), "address=127.0.0.1:"+strconv.Itoa(port))
}

func TestATemporalThatRefusesIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	port := serve(t, &temporal{refuse: status.Error(codes.Unauthenticated, "no such key")})
	env := quiet()
	env["TEMPORAL_ADDRESS"] = "127.0.0.1:" + strconv.Itoa(port)
	env["TEMPORAL_API_KEY"], env["TEMPORAL_TLS"] = "sentinel", "false"
	var out output.Log
	err := worker.Run(t.Context(), settings(1), worker.Options{Log: &out, Environment: env, DialPatience: time.Hour})
	require.ErrorContains(t, err,
		env["TEMPORAL_ADDRESS"]+" (from TEMPORAL_ADDRESS or the profile file) refuses this worker")
	require.NotContains(t, err.Error()+out.String(), "sentinel")
}

func TestWrongProvidersAreToldBeforeTemporalIsWaitedFor(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		`providers[0].type: "gpc" is not a provider type`: "providers: [{name: a, type: gpc}]\n",
		`dir: "" must name a directory`:                   "providers: [{name: a, type: local}]\n",
		"providers: is missing or not a list":             "",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			cfg := settings(free(t))
			cfg.Roles = []config.Role{config.RoleWorker}
			cfg.ProvidersFile = filepath.Join(t.TempDir(), "providers.yaml")
			require.NoError(t, os.WriteFile(cfg.ProvidersFile, []byte(text), 0o600))
			err := worker.Run(t.Context(), cfg, worker.Options{
				Log: new(output.Log), Environment: quiet(), DialPatience: time.Hour,
			})
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, cfg.ProvidersFile)
			require.Equal(t, 2, worker.ExitCode(new(output.Log), err))
		})
	}
}

func TestASignalEndsTheWaitForTemporal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out := &signalling{when: "cannot be reached yet", do: cancel}
	require.NoError(t, worker.Run(ctx, settings(free(t)), worker.Options{
		Log: out, Environment: quiet(), DialPatience: time.Hour,
	}))
	require.Error(t, ctx.Err())
}

// signalling does something when a log line has a text.
type signalling struct {
	when string
	do   func()
}

func (s *signalling) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.when) {
		s.do()
	}
	return len(p), nil
}

func TestAPortInUseIsNamedWithItsVariable(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	for variable, take := range map[string]func(*config.Config){
		"EGRESSFLEET_API_PORT":     func(c *config.Config) { c.API.Port = port },
		"EGRESSFLEET_METRICS_PORT": func(c *config.Config) { c.Metrics.Port = port },
		"EGRESSFLEET_ECHO_PORT":    func(c *config.Config) { c.Echo.Port = port },
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			cfg := settings(free(t))
			take(&cfg)
			err := worker.Run(t.Context(), cfg, worker.Options{
				Log: new(output.Log), Environment: quiet(), DialPatience: time.Hour, // it is told before Temporal is waited for
			})
			require.ErrorContains(t, err, "port "+strconv.Itoa(port)+" for ")
			require.ErrorContains(t, err, "is in use on 127.0.0.1: stop what uses it, or set "+variable+" to another port")
		})
	}
}

func TestTheRoleAPIServesATargetForProbes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	up, done := make(chan worker.Addresses, 1), make(chan error, 1)
	cfg := settings(serve(t, &temporal{}))
	cfg.Echo.Certificate = filepath.Join(t.TempDir(), "echo.pem")
	go func() {
		done <- worker.Run(ctx, cfg, worker.Options{
			Log: new(output.Log), Environment: quiet(), Up: func(a worker.Addresses) { up <- a },
		})
	}()
	target, err := probe.ParseTarget((<-up).Echo)
	require.NoError(t, err)
	control := new(probe.Prober).Control(t.Context(), target)
	require.False(t, control.Reached, "nobody trusts it who does not know it")
	target.Roots, err = echo.ReadRoots(cfg.Echo.Certificate) // as a worker in another process does
	require.NoError(t, err)
	control = new(probe.Prober).Control(t.Context(), target)
	require.True(t, control.Reached, control.Text)
	cancel()
	require.NoError(t, <-done)
	control = new(probe.Prober).Control(t.Context(), target)
	require.False(t, control.Reached, "it ends with the process")
}

func TestAnEchoCertificateThatCannotBeWrittenIsNamed(t *testing.T) {
	t.Parallel()
	cfg := settings(free(t))
	cfg.Echo.Certificate = "/nowhere/echo.pem"
	err := worker.Run(t.Context(), cfg, worker.Options{Log: new(output.Log), Environment: quiet()})
	require.ErrorContains(t, err, "echo.certificate (EGRESSFLEET_ECHO_CERTIFICATE)")
	require.ErrorContains(t, err, "/nowhere")
}

func TestTheRoleAPIServesUntilItIsEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	up, done := make(chan worker.Addresses, 1), make(chan error, 1)
	var out output.Log
	cfg := settings(serve(t, &temporal{}))
	cfg.Warnings = []string{"EGRESSFLEET_PROT is no setting and has no effect"}
	go func() {
		done <- worker.Run(ctx, cfg, worker.Options{
			Log: &out, Environment: quiet(), Up: func(a worker.Addresses) { up <- a },
		})
	}()
	at := <-up
	require.Equal(t, http.StatusOK, get(t, "http://"+at.API+"/healthz"))
	require.Equal(t, http.StatusOK, get(t, "http://"+at.Metrics+"/metrics"))
	require.Equal(t, http.StatusOK, get(t, "http://"+at.Metrics+"/readyz"))
	requireReady(t, at.Metrics)
	require.Equal(t, http.StatusInternalServerError, get(t, "http://"+at.API+"/v1/namespaces/default/proxies/a"),
		"the API asks Temporal, and this one knows no workflows")
	require.Contains(t, out.String(), `msg="egressfleet is up"`)
	require.Contains(t, out.String(), "installation=test roles=api")
	require.Contains(t, out.String(), "EGRESSFLEET_PROT is no setting")
	cancel()
	require.NoError(t, <-done)
	for _, address := range []string{at.API, at.Metrics} {
		_, err := net.Dial("tcp", address)
		require.Error(t, err, "nothing listens on %s any more", address)
	}
}

func TestTheProcessAnswersThatItLivesWhileTemporalIsAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiting, done := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	out := &signalling{when: "cannot be reached yet", do: func() { once.Do(func() { close(waiting) }) }}
	cfg := settings(free(t))
	cfg.API.Port = free(t)
	go func() {
		done <- worker.Run(ctx, cfg, worker.Options{Log: out, Environment: quiet(), DialPatience: time.Hour})
	}()
	select {
	case <-waiting:
	case err := <-done:
		require.FailNow(t, "it does not wait", err)
	}
	at := "http://" + cfg.API.Address()
	const proxy = "/v1/namespaces/default/proxies/a"
	for request, want := range map[string]struct {
		status int
		kind   string
	}{
		"GET /healthz":                       {http.StatusOK, ""},
		"GET /readyz":                        {http.StatusServiceUnavailable, "not-ready"},
		"GET /v1/discovery":                  {http.StatusServiceUnavailable, "discovery-unknown"},
		"GET /v1/namespaces/default/proxies": {http.StatusServiceUnavailable, "unavailable"},
		"GET " + proxy:                       {http.StatusServiceUnavailable, "unavailable"},
		"PUT " + proxy:                       {http.StatusServiceUnavailable, "unavailable"},
		"DELETE " + proxy:                    {http.StatusServiceUnavailable, "unavailable"},
	} {
		method, path, _ := strings.Cut(request, " ")
		status, retryAfter, body := ask(t, method, at+path)
		require.Equal(t, want.status, status, request)
		if want.kind != "" {
			require.Contains(t, body, "urn:egressfleet:problem:"+want.kind+`"`, request)
			require.NotEmpty(t, retryAfter, request)
		}
		if want.kind == "not-ready" {
			require.Contains(t, body, "Temporal does not answer")
		}
	}
	cancel()
	require.NoError(t, <-done)
}

// ask sends a request, with a body that PUT takes.
func ask(t *testing.T, method, url string) (status int, retryAfter, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url,
		strings.NewReader(`{"spec": {"provider": "local", "port": 3128}}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, text := roundTrip(t, req)
	return resp.StatusCode, resp.Header.Get("Retry-After"), text
}

func answer(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	resp, text := roundTrip(t, req)
	return resp.StatusCode, text
}

func roundTrip(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	const patience = 20 * time.Second // for what should come at once
	resp, err := (&http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: patience}).RoundTrip(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

func get(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// command executes a command line without running a worker.
func command(t *testing.T, args ...string) (ran *config.Config, out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := worker.NewCommand(func(_ context.Context, cfg config.Config, _ worker.Options) error {
		ran = &cfg
		return nil
	})
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SetArgs(args)
	code = worker.ExitCode(&e, cmd.ExecuteContext(t.Context()))
	return ran, o.String(), e.String(), code
}

func TestTheCommandLineRunsWhatTheFileAndTheFlagsSay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "worker.yaml")
	require.NoError(t, os.WriteFile(file, []byte("installation: one\nprovidersFile: p\nlog: {format: json}\n"), 0o600))
	ran, _, errOut, code := command(t, "--config", file, "--installation", "two")
	require.Zero(t, code, errOut)
	require.Equal(t, "two", ran.Installation)
	require.Equal(t, "json", ran.Log.Format)
}

func TestWrongCommandLinesRunNothing(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`installation: "A" is not a DNS label`: {"--installation", "A"},
		"/nowhere.yaml":                        {"--config", "/nowhere.yaml"},
		"unknown flag: --frob":                 {"--frob"},
		`"serve" is no command of worker`:      {"serve"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			ran, _, errOut, code := command(t, args...)
			require.Nil(t, ran)
			require.Contains(t, errOut, want)
			require.Equal(t, 2, code)
		})
	}
}

func TestConfigPrintsTheSettings(t *testing.T) {
	t.Parallel()
	ran, out, _, code := command(t, "config")
	require.Nil(t, ran)
	require.Zero(t, code)
	require.Contains(t, out, "| `providersFile` | `EGRESSFLEET_PROVIDERS_FILE` |")
	_, out, _, _ = command(t, "version")
	require.NotEmpty(t, strings.TrimSpace(out))
}

// requireReady asks as a container engine does.
func requireReady(t *testing.T, metrics string) {
	t.Helper()
	_, port, err := net.SplitHostPort(metrics)
	require.NoError(t, err)
	ask := func(host, port string) error {
		cmd := worker.NewCommand(nil)
		cmd.SetArgs([]string{
			"ready", "--installation=test", "--role=api", "--api-host=127.0.0.1",
			"--metrics-host=" + host, "--metrics-port=" + port,
		})
		return cmd.ExecuteContext(t.Context())
	}
	require.NoError(t, ask("0.0.0.0", port))
	require.Error(t, ask("127.0.0.1", "1"))
}
