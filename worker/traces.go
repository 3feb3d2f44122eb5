package main

import (
	"context"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/telemetry"
	"github.com/egressfleet/egressfleet/internal/tracing"
	"github.com/egressfleet/egressfleet/providers"
)

// openTraces comes before all that could have spans. Libraries below ours ask the global
// provider, and begin no trace either.
func (p *process) openTraces(ctx context.Context) (err error) {
	p.traces, err = tracing.Open(ctx, tracing.Options{Getenv: os.Getenv, Version: telemetry.Version(), Log: p.log})
	if err != nil {
		return usageError{err}
	}
	if p.traces == nil {
		return nil
	}
	otel.SetTracerProvider(p.traces.Work())
	p.onStop(func() error {
		if err := p.traces.Close(context.WithoutCancel(ctx)); err != nil {
			p.log.Warn("the last spans were not exported", slog.String("error", err.Error()))
		}
		return nil
	})
	return nil
}

// trace joins what is asked of Temporal, and what a worker of this client does.
func (p *process) trace(options *client.Options) error {
	asks, does, err := p.traces.Interceptors(tracing.TemporalOptions{
		Expected:   func(err error) bool { return activities.FaultOf(err).Class == providers.ErrNotFound },
		Background: []string{activityAwaitChange},
	})
	if err != nil || asks == nil {
		return err
	}
	options.Interceptors = append(options.Interceptors, asks)
	p.interceptors = []interceptor.WorkerInterceptor{does}
	return nil
}

// activityAwaitChange watches an instance for hours: its looks are nobody's request.
const activityAwaitChange = "AwaitChange"

// measure shows the figures of Temporal's SDK beside ours.
func (p *process) measure(options *client.Options) error {
	meter, err := telemetry.NewMeter(p.registry)
	if err != nil {
		return err
	}
	below := opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: meter, UseMonotonicCounters: true,
		OnError: func(err error) { p.log.Warn("a metric of Temporal is missing", slog.String("error", err.Error())) },
	})
	var names []string
	if p.cfg.Plays(config.RoleWorker) {
		names = p.providers.Names()
	}
	options.MetricsHandler = newLifetimes(p.registry, below, names...)
	return nil
}
