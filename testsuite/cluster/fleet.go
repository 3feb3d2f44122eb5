//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
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

const providersConfig = `providers:
  - name: %s
    type: gcp
    gcp:
      project: %s
      zones: [us-central1-a, us-central1-b]
      machineType: e2-small
      image: ubuntu-os-cloud/family/ubuntu-2404-lts-amd64
      firewall: managed
      sourceRanges: [127.0.0.0/8]
      endpoint: %s
      insecureNoAuthentication: true
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
	return w.write("providers.yaml",
		fmt.Sprintf(providersConfig, providerName, gcefake.CapturedProject, "http://"+l.Addr().String()))
}

// openFleet starts the workers and the APIs.
func (w *world) openFleet(ctx context.Context) error {
	for n := range pairs {
		for _, p := range []struct {
			role, host string
			to         **program
		}{{"worker", workerHost(n), &w.workers[n]}, {"api", apiHost(n), &w.apis[n]}} {
			name := p.role + "-" + strconv.Itoa(n+1)
			text := fmt.Sprintf(processConfig, installation, p.role, filepath.Join(w.dir, "providers.yaml"),
				frontends, frontendPort, temporalNamespace, p.host)
			if err := w.write(name+".yaml", text); err != nil {
				return err
			}
			*p.to = newProgram(w.dir, name, w.built("worker"), "--config", filepath.Join(w.dir, name+".yaml"))
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

func (w *world) startReady(ctx context.Context, p *program, host string) error {
	if err := p.start(); err != nil {
		return err
	}
	return w.until(ctx, startWithin, p.name+" is ready", func(ctx context.Context) error {
		// A worker ends where the server that it asks has yet to learn of the namespace, and a
		// supervisor starts it again.
		if err := p.alive(); err != nil {
			w.say(p.name + " has ended in its start, and is started again")
			return errors.Join(fmt.Errorf("it was started again: %s", err), p.start()) //nolint:errorlint // it is not over
		}
		_, _, err := ask(ctx, request{Method: http.MethodGet, URL: "http://" + host + ":9464/readyz"})
		return err
	})
}
