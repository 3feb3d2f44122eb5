// Package shipped runs the binary of the worker's image for benches, as a process of its
// own, with the provider gcp over testsuite/gcefake: what it takes is what an operator
// sees. There is no control group here; testsuite/memory has one. It may import every
// room. Start reading at Start.
package shipped

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/ports"
	"github.com/egressfleet/egressfleet/testsuite/usage"
)

const (
	// Provider is the one that the worker has.
	Provider = "gcp"

	readyWithin = 2 * time.Minute
	endWithin   = time.Minute
	lookEvery   = 100 * time.Millisecond
	lastWords   = 2000 // bytes of its log
	idle        = 64   // connections that are kept: those that come and go would be files of the worker
)

// Options say how the worker runs.
type Options struct {
	Temporal string // host:port
	Backend  string // the URL of the Compute Engine
	Heap     string // GOMEMLIMIT, such as "64MiB"; empty: no bound
	Settings string // further lines of its configuration, in YAML
}

// Worker is one process.
type Worker struct {
	API, Stats string // URLs
	dir        string
	cmd        *exec.Cmd
	ended      chan struct{}
}

const settings = `installation: %s
providersFile: %s
api: {port: %d}
metrics: {port: %d}
echo: {port: 0}
temporal: {port: %s}
%s
`

// Start starts bin/worker-static and waits until it is ready. The caller closes it.
func Start(ctx context.Context, o Options) (w *Worker, err error) {
	root, err := devserver.Root()
	if err != nil {
		return nil, err
	}
	w = &Worker{ended: make(chan struct{})}
	if w.dir, err = os.MkdirTemp("", "bench-worker-"); err != nil {
		return nil, err
	}
	if err := w.configure(o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(w.dir))
	}
	if err := w.run(filepath.Join(root, "bin", "worker-static"), o.Heap); err != nil {
		return nil, errors.Join(err, os.RemoveAll(w.dir))
	}
	if err := w.ready(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Worker) configure(o Options) error {
	api, err := ports.Take()
	if err != nil {
		return err
	}
	stats, err := ports.Take()
	if err != nil {
		return err
	}
	_, temporal, err := net.SplitHostPort(o.Temporal)
	if err != nil {
		return err
	}
	w.API, w.Stats = "http://127.0.0.1:"+strconv.Itoa(api), "http://127.0.0.1:"+strconv.Itoa(stats)
	providers := filepath.Join(w.dir, "providers.yaml")
	return errors.Join(
		os.WriteFile(providers, gcefake.Providers(o.Backend), 0o600),
		os.WriteFile(filepath.Join(w.dir, "worker.yaml"),
			fmt.Appendf(nil, settings, live.Installation, providers, api, stats, temporal, o.Settings), 0o600))
}

func (w *Worker) run(program, heap string) error {
	out, err := os.Create(filepath.Join(w.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	file := filepath.Join(w.dir, "worker.yaml")
	w.cmd = exec.Command(program, "--config", file) //nolint:gosec,noctx // closed by Close
	w.cmd.Stdout, w.cmd.Stderr = out, out
	w.cmd.Env = []string{"HOME=" + w.dir} // nothing of this machine's Temporal
	if heap != "" {
		w.cmd.Env = append(w.cmd.Env, "GOMEMLIMIT="+heap)
	}
	if err := w.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(w.ended)
		_ = w.cmd.Wait()
	}()
	return nil
}

func (w *Worker) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, err := w.ask(ctx, http.MethodGet, w.Stats+"/readyz", "")
		if err == nil {
			return nil
		}
		if gone := w.Alive(); gone != nil {
			return gone
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("the worker is not ready: %w", err)
		}
	}
}

// Alive returns an error once the worker has ended.
func (w *Worker) Alive() error {
	select {
	case <-w.ended:
		text, _ := os.ReadFile(filepath.Join(w.dir, "log"))
		return fmt.Errorf("the worker has ended (%s); its last words:\n%s", w.cmd.ProcessState,
			text[max(0, len(text)-lastWords):])
	default:
		return nil
	}
}

// Close ends the worker.
func (w *Worker) Close() error {
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.ended:
	case <-time.After(endWithin):
		_ = w.cmd.Process.Kill()
		<-w.ended
	}
	return os.RemoveAll(w.dir)
}

// Usage is what the process takes now.
func (w *Worker) Usage() (usage.Usage, error) { return usage.Of(w.cmd.Process.Pid) }

// Kept is how many workflows it keeps at most, as it says at its start.
func (w *Worker) Kept() (int, error) {
	text, err := os.ReadFile(filepath.Join(w.dir, "log"))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		var said struct{ WorkflowsKept int }
		if json.Unmarshal(line, &said) == nil && said.WorkflowsKept != 0 {
			return said.WorkflowsKept, nil
		}
	}
	return 0, errors.New("the worker did not say how many workflows it keeps")
}

// Descriptors are how many files the process has open.
func (w *Worker) Descriptors() (int, error) {
	all, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(w.cmd.Process.Pid), "fd"))
	return len(all), err
}

// Metrics returns the values of metrics without labels, in their order.
func (w *Worker) Metrics(ctx context.Context, names ...string) ([]float64, error) {
	text, err := w.ask(ctx, http.MethodGet, w.Stats+"/metrics", "")
	if err != nil {
		return nil, errors.Join(err, w.Alive())
	}
	values := make([]float64, len(names))
	for i, name := range names {
		if values[i], err = metric(text, name); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func metric(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == name {
			return strconv.ParseFloat(words[1], 64)
		}
	}
	return 0, fmt.Errorf("/metrics has no %s", name)
}

// Ask sends a request to the API and returns the body; an error for a status that is none
// of success.
func (w *Worker) Ask(ctx context.Context, method, path, body string) (string, error) {
	return w.ask(ctx, method, w.API+path, body)
}

// client gives a worker up that does not answer at all.
var client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: idle}}

// StatusError is an answer that is none of success.
type StatusError struct {
	Asked  string
	Status int
	Text   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%s: %d: %s", e.Asked, e.Status, e.Text) }

func (w *Worker) ask(ctx context.Context, method, url, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = &StatusError{method + " " + url, answer.StatusCode, string(text[:min(len(text), lastWords)])}
	}
	return string(text), err
}
