package main

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/decorators"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	providerName = "gcp"
	installation = "chaos"
	workers      = 2 // each with a provider of its own: what one remembers the other does not
	region       = "us-central1"
)

// timing is the production timing with its waits shortened to fit a run. What is a
// constant of the workflow, or of the provider, stays.
func timing() proxy.Timing {
	t := proxy.DefaultTiming().WithSteadyPoll(15 * time.Second)
	t.Busy = proxy.Pace{Poll: time.Second, Max: 2 * time.Second, Lease: 10 * time.Second}
	t.Retry = proxy.Pace{Poll: time.Second, Max: 4 * time.Second, Lease: time.Minute}
	t.Quota = proxy.Pace{Poll: 3 * time.Second, Max: 3 * time.Second, Lease: time.Minute}
	t.Probe = proxy.Pace{Poll: 5 * time.Second, Max: 5 * time.Second, Lease: time.Minute}
	t.Remake = proxy.Pace{Poll: 5 * time.Second, Max: 5 * time.Second}
	t.Create = activities.Limits{Attempt: 15 * time.Second, Total: 60 * time.Second}
	t.Call = activities.Limits{Attempt: 10 * time.Second, Total: 30 * time.Second}
	t.Look = activities.Limits{Attempt: 10 * time.Second, Total: 10 * time.Second}
	t.Outlast = 2 * time.Second
	return t
}

func (w *world) configured() gcp.Config {
	return gcp.Config{
		Project: gcefake.CapturedProject, Endpoint: w.address, InsecureNoAuthentication: true,
		Image: "debian-cloud/family/debian-12", Firewall: "managed", SourceRanges: []string{"203.0.113.0/24"},
		CallTimeout: "5s", StockoutMemory: "5s",
	}
}

// hire starts the workers, with the workflows and activities of production.
func (w *world) hire(ctx context.Context) (stop func(), err error) {
	// What is broken on purpose is nothing to log.
	ctx = providers.WithLogger(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))
	var ends []func()
	stop = sync.OnceFunc(func() {
		for _, end := range ends {
			end()
		}
	})
	for n := range workers {
		p, err := gcp.New(ctx, providerName, installation, w.configured())
		if err != nil {
			return stop, err
		}
		ends = append(ends, func() { _ = p.Close() })
		tracer, metrics := noop.NewTracerProvider().Tracer(""), decorators.NewMetrics(prometheus.NewRegistry())
		backend := decorators.Stack(p, providerName, tracer, metrics)
		wk := worker.New(w.temporal, proxy.TaskQueue, worker.Options{
			Identity: "worker-" + strconv.Itoa(n), BackgroundActivityContext: ctx,
		})
		workflows.Register(wk, timing())
		activities.Register(wk, &activities.Instances{
			Lookup: func(name string) (providers.Provider, func(), bool) {
				return backend, func() {}, name == providerName
			},
			Installation: installation,
		})
		if err := wk.Start(); err != nil {
			return stop, errors.Join(err)
		}
		ends = append([]func(){wk.Stop}, ends...)
	}
	return stop, nil
}
