// Package jaeger runs a real Jaeger for a test, and reads what it has. It may import the
// other helpers of testsuite. Start reading at Start.
package jaeger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

const (
	soon = time.Minute // generous: the machine may be busy
	tick = 100 * time.Millisecond
)

// Server keeps traces in memory, and listens on loopback only.
type Server struct {
	t             testing.TB
	query, intake int // ports
}

// Start returns a Jaeger that is ready and ends with the test. `make tool-jaeger` builds it.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, query: port(t), intake: port(t)}
	at := func(port int) string { return fmt.Sprintf("{endpoint: \"127.0.0.1:%d\"}", port) }
	file := filepath.Join(t.TempDir(), "jaeger.yaml")
	require.NoError(t, os.WriteFile(file, []byte("service:\n  extensions: [jaeger_storage, jaeger_query]\n"+
		"  pipelines:\n    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}\n"+
		"  telemetry:\n    metrics: {level: none}\n    logs: {level: error}\n"+
		"extensions:\n  jaeger_query:\n    storage: {traces: memory}\n    grpc: "+at(port(t))+"\n    http: "+at(s.query)+
		"\n  jaeger_storage:\n    backends:\n      memory: {memory: {max_traces: 10000}}\n"+
		"receivers:\n  otlp:\n    protocols:\n      http: "+at(s.intake)+"\n"+
		"exporters:\n  jaeger_storage_exporter: {trace_storage: memory}\n"), 0o600))
	s.run(file)
	require.Eventually(t, func() bool {
		status, _ := s.ask("/api/services")
		return status == http.StatusOK
	}, soon, tick, "Jaeger answers")
	return s
}

func (s *Server) run(file string) {
	root, err := devserver.Root()
	require.NoError(s.t, err)
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(root, "bin", "jaeger"), "--config", file) //nolint:gosec,noctx // ended below
	cmd.Env = append(os.Environ(), "OTEL_TRACES_SAMPLER=always_off")            // it would trace itself
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(s.t, cmd.Start(), "`make tool-jaeger` builds it")
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if s.t.Failed() {
			s.t.Log(log.String())
		}
	})
}

func port(t testing.TB) int {
	t.Helper()
	p, err := ports.Take()
	require.NoError(t, err)
	return p
}

// Env has a process send its spans here, and soon.
func (s *Server) Env() []string {
	return []string{
		"OTEL_BSP_SCHEDULE_DELAY=100",
		fmt.Sprintf("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:%d/v1/traces", s.intake),
	}
}

// Traces returns what there is that has a span of these tags, and the text of it.
func (s *Server) Traces(tags map[string]string) (found []Trace, raw string) {
	s.t.Helper()
	wanted, err := json.Marshal(tags)
	require.NoError(s.t, err)
	query := url.Values{"service": {"egressfleet"}, "limit": {"1000"}, "lookback": {"1h"}}
	if len(tags) > 0 {
		query.Set("tags", string(wanted))
	}
	status, raw := s.ask("/api/traces?" + query.Encode())
	require.Equal(s.t, http.StatusOK, status, raw)
	var answer struct {
		Data []Trace `json:"data"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(raw), &answer))
	return answer.Data, raw
}

// Of is the trace of a request about a proxy; empty where there is none.
func (s *Server) Of(method, name string) Trace {
	s.t.Helper()
	found, _ := s.Traces(map[string]string{"proxy.name": name})
	for _, t := range found {
		for _, root := range t.Roots() {
			if root.OperationName == method+" "+route {
				return t
			}
		}
	}
	return Trace{}
}

// ask returns status and body; status 0 when nobody listens.
func (s *Server) ask(path string) (int, string) {
	at := fmt.Sprintf("http://127.0.0.1:%d%s", s.query, path)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, at, nil)
	require.NoError(s.t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, string(raw)
}
