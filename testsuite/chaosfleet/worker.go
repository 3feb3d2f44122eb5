package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/decorators"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// hire starts a worker with the workflows and activities of production.
func (w *world) hire(ctx context.Context, temporal client.Client) (stop func(), err error) {
	registry := prometheus.NewRegistry()
	tracer := noop.NewTracerProvider().Tracer("")
	backend := decorators.Stack(w.cloud, providerName, tracer, decorators.NewMetrics(registry))
	lookup := func(name string) (providers.Provider, func(), bool) { return backend, func() {}, name == providerName }
	names := func() []string { return []string{providerName} }
	instances := &activities.Instances{Lookup: lookup, Installation: installation}
	metrics := activities.NewSweepMetrics(registry)
	wk := worker.New(temporal, proxy.TaskQueue, worker.Options{
		// What is broken on purpose is nothing to log.
		BackgroundActivityContext: providers.WithLogger(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler)),
	})
	workflows.Register(wk, timing())
	activities.Register(wk, instances,
		&collector{
			&activities.Orphans{Instances: instances, Names: names, Owners: ours{w.sight}, Metrics: metrics}, &w.diary, w.sight,
		},
		&looker{
			&activities.Drift{Instances: instances, Names: names, Fleet: watched{w.sight}, Metrics: metrics}, &w.diary,
		},
		&prober{
			&activities.Health{
				Instances: instances, Fleet: probed{w.sight}, Prober: &probe.Prober{Thresholds: thresholds()},
				TargetOf: func(string) probe.Target { return w.site.target() }, Metrics: activities.NewHealthMetrics(registry),
			}, &w.diary, &w.still,
		},
		&activities.Checks{Lookup: lookup, Names: names, Metrics: activities.NewCheckMetrics(registry)},
	)
	if err := wk.Start(); err != nil {
		return nil, err
	}
	return sync.OnceFunc(wk.Stop), nil
}
