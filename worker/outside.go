package main

import (
	"context"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// prepareOutside makes the schedule of the check, which is only there where a second
// prober is.
func (p *process) prepareOutside(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	return p.fleet.EnsureSchedules(ctx, fleet.OpenProxyCheck())
}

// startOutside begins to ask as a stranger. It takes no workflow: those run where the
// providers are.
func (p *process) startOutside(ctx context.Context) error {
	_, atOnce := shares(p.cfg, p.capacity().activities)
	w := worker.New(p.temporal, openproxy.QueueOf(proxy.TaskQueue), worker.Options{
		DisableWorkflowWorker:              true,
		WorkerStopTimeout:                  workerStopTimeout,
		MaxConcurrentActivityExecutionSize: atOnce,
		BackgroundActivityContext:          providers.WithLogger(context.WithoutCancel(ctx), p.log),
		OnFatalError:                       func(err error) { p.fail("second prober", err) },
	})
	w.RegisterActivity(&activities.Outside{
		Fleet: hands.Probed{Client: p.fleet}, Prober: &probe.Prober{}, Echo: p.trustEcho,
	})
	if err := w.Start(); err != nil {
		return fmt.Errorf("second prober: %w", err)
	}
	p.onStop(func() error { w.Stop(); return nil })
	return nil
}

// trustEcho adds whom the fleet's own target is trusted by, where that is known here.
// Where it is not, being kept away from a proxy proves nothing.
func (p *process) trustEcho(target probe.Target) probe.Target {
	if p.cfg.Echo.Certificate == "" {
		return target
	}
	roots, err := echo.ReadRoots(p.cfg.Echo.Certificate)
	if err != nil {
		p.log.Warn("the echo target cannot be verified", slog.String("setting", config.EnvEchoCertificate),
			slog.String("error", err.Error()))
		return target
	}
	target.Roots = roots
	return target
}
