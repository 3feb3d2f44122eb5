//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/program"
	"github.com/egressfleet/egressfleet/testsuite/temporalserver"
)

const (
	installation = "cluster"
	providerName = "gcp"
	deployment   = "egressfleet"
)

func workerHost(n int) string { return "127.0.0." + strconv.Itoa(21+n) }
func apiHost(n int) string    { return "127.0.0." + strconv.Itoa(31+n) }

// processConfig is of one process of the fleet. What is not here is as in production.
const processConfig = `installation: %s
roles: [%s]
providersFile: %s
temporal: {host: %s, port: %d, namespace: %s}
api: {host: %s, port: 8080}
metrics: {host: %[7]s, port: 9464}
echo: {port: 0}
log: {format: json}
`

// pace is that of the backend.
func pace() gcefake.Pace {
	return gcefake.Pace{
		Running: 500 * time.Millisecond, Staging: 500 * time.Millisecond, Stopping: 300 * time.Millisecond,
		Deprovisioning: 300 * time.Millisecond, Retention: time.Minute,
	}
}

// openCloud serves the backend on loopback.
func (w *world) openCloud(ctx context.Context) error {
	w.cloud = gcefake.New(gcefake.Options{Pace: pace()})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: w.cloud, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	go func() { _ = web.Serve(l) }()
	return w.write("providers.yaml", string(gcefake.Providers("http://"+l.Addr().String())))
}

// tellFailed says which workflow tasks a worker has failed since its start, and returns how
// many they are. What it does while it ends is not known.
func (w *world) tellFailed(ctx context.Context, n int) (all int, err error) {
	_, text, err := ask(ctx, request{Method: http.MethodGet, URL: "http://" + workerHost(n) + ":9464/metrics"})
	if err != nil {
		return 0, err
	}
	all, lines, err := temporalserver.FailedTasks(text)
	for _, line := range lines {
		w.say("%s has failed workflow tasks: %s", w.workers[n].Name, line)
	}
	return all, err
}

// countFailed notes the workflow tasks that a worker has failed since its start but for
// those of the storm, and is called before it ends. A server that is killed may leave a
// worker with a history that lacks the events of its task.
func (w *world) countFailed(ctx context.Context, n int) error {
	all, err := w.tellFailed(ctx, n)
	if all > w.stormy[n] {
		w.Failed = append(w.Failed, fmt.Sprintf("%d of %s", all-w.stormy[n], w.workers[n].Name))
	}
	w.stormy[n] = 0
	return err
}

// openFleet starts the workers and the APIs.
func (w *world) openFleet(ctx context.Context) error {
	for n := range pairs {
		for _, p := range []struct {
			role, host string
			to         **program.Program
		}{{"worker", workerHost(n), &w.workers[n]}, {"api", apiHost(n), &w.apis[n]}} {
			name := p.role + "-" + strconv.Itoa(n+1)
			text := fmt.Sprintf(processConfig, installation, p.role, filepath.Join(w.dir, "providers.yaml"),
				frontends, frontendPort, temporalNamespace, p.host)
			if err := w.write(name+".yaml", text); err != nil {
				return err
			}
			*p.to = program.New(w.dir, name, w.built("worker"), "--config", filepath.Join(w.dir, name+".yaml"))
		}
	}
	return w.startFleet(ctx)
}

// startFleet starts the workers and the APIs, one after the other, and waits for each.
func (w *world) startFleet(ctx context.Context) error {
	for n := range pairs {
		if err := w.startReady(ctx, w.workers[n], workerHost(n)); err != nil {
			return err
		}
		if err := w.startReady(ctx, w.apis[n], apiHost(n)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) startReady(ctx context.Context, p *program.Program, host string) error {
	if err := p.Start(); err != nil {
		return err
	}
	return w.until(ctx, startWithin, p.Name+" is ready", func(ctx context.Context) error {
		if err := p.Alive(); err != nil {
			return err
		}
		_, _, err := ask(ctx, request{Method: http.MethodGet, URL: "http://" + host + ":9464/readyz"})
		return err
	})
}
