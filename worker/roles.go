package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/feedback"
	"github.com/egressfleet/egressfleet/api/server"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	// workerStopTimeout lets running activities end; the default of 0 abandons them.
	workerStopTimeout = time.Minute
	// mostPollers is how many requests for one kind of task may wait at the server. The
	// default of 2 in all bounds a worker by the way to the server and back.
	mostPollers = 16
	// prepareTimeout bounds what is asked of Temporal before work begins.
	prepareTimeout = 30 * time.Second
)

// prepareNamespace makes the search attributes and the birth record of the
// installation before anything is created that needs them.
func (p *process) prepareNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	if err := p.fleet.EnsureSearchAttributes(ctx, p.cfg.Temporal.Namespace); err != nil {
		return err
	}
	if err := p.fleet.EnsureInstallation(ctx); err != nil {
		return err
	}
	return p.fleet.EnsureSchedules(ctx, schedules(p.cfg.Intervals)...)
}

// readKeys opens the keys that encrypt what Temporal stores; there may be none.
func (p *process) readKeys(context.Context) (err error) {
	p.keys, err = codec.Open(codec.Options{Dir: p.cfg.Codec.Keys, Current: p.cfg.Codec.Current, Logger: p.log})
	if err != nil {
		return usageError{err}
	}
	return nil
}

// codecEndpoint returns what the Web UI and the CLI decrypt with; nil without tokens.
func (p *process) codecEndpoint() (http.Handler, error) {
	if p.cfg.Codec.TokensFile == "" {
		return nil, nil //nolint:nilnil // no endpoint, and nothing wrong
	}
	endpoint, err := p.keys.Endpoint(codec.EndpointOptions{
		TokensFile: p.cfg.Codec.TokensFile, Origins: p.cfg.Codec.Origins, Logger: p.log,
	})
	if err != nil {
		return nil, usageError{err}
	}
	return endpoint, nil
}

// startWorker begins to take work.
func (p *process) startWorker(ctx context.Context) error {
	room := p.capacity()
	atOnce, _ := shares(p.cfg, room.activities)
	worker.SetStickyWorkflowCacheSize(room.workflows)
	entity := &proxy.Workflow{Timing: proxy.DefaultTiming().WithSteadyPoll(p.cfg.SteadyPoll)}
	w := worker.New(p.temporal, proxy.TaskQueue, worker.Options{
		WorkerStopTimeout:                      workerStopTimeout,
		MaxConcurrentActivityExecutionSize:     atOnce,
		MaxConcurrentWorkflowTaskExecutionSize: room.tasks,
		WorkflowTaskPollerBehavior:             pollers(),
		ActivityTaskPollerBehavior:             pollers(),
		BackgroundActivityContext:              providers.WithLogger(context.WithoutCancel(ctx), p.log),
		OnFatalError:                           func(err error) { p.fail("worker", err) },
		Interceptors:                           append(p.interceptors, entity.Direct()),
		DeploymentOptions:                      versioned(p.cfg.Deployment),
	})
	workflows.Register(w, entity.Timing)
	instances := &activities.Instances{
		Lookup: p.providers.Lookup, Installation: p.cfg.Installation, SecretsDir: p.cfg.SecretsDir,
		Getenv: os.Getenv,
	}
	activities.Register(w, instances, p.sweeps(instances)...)
	if err := w.Start(); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	p.onStop(func() error { w.Stop(); return nil })
	return nil
}

// versioned has every workflow go on with whichever version is current: a proxy lives for
// longer than a worker of any version, and pinned to one it would wait for it for good.
func versioned(d config.Deployment) worker.DeploymentOptions {
	if d.Name == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: d.Name, BuildID: d.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
}

// pollers are as many as the server finds that there are tasks for.
func pollers() worker.PollerBehavior {
	return worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		MaximumNumberOfPollers: mostPollers,
	})
}

func (p *process) listenAPI(ctx context.Context) (err error) {
	p.api, err = listen(ctx, p.cfg.API.Listen, "the API", config.EnvAPIPort)
	if err != nil {
		return err
	}
	p.addresses.API = p.api.Addr().String()
	p.onStop(func() error { _ = p.api.Close(); return nil }) // closed already, where it was served
	return nil
}

// serveAPI answers that the fleet is unavailable, and that the process lives.
func (p *process) serveAPI(ctx context.Context) error {
	endpoint, err := p.codecEndpoint()
	if err != nil {
		return err
	}
	links, err := p.workflowURL()
	if err != nil {
		return err
	}
	options := server.Options{
		Logger: p.log, Providers: p.shownProviders, Codec: endpoint, WorkflowURL: links,
		Feedback: policyOf(p.cfg.Feedback), FeedbackMetrics: feedback.NewMetrics(p.registry),
		Traces: p.traces.Requests(), Metrics: p.registry,
	}
	if err := p.guard(&options); err != nil {
		return usageError{err}
	}
	p.awaited = newAwaitedFleet()
	s := server.New(p.awaited, options) //nolint:contextcheck // every request has its own
	p.stopAPI = p.background(ctx, "API", func(ctx context.Context) error { return s.Run(ctx, p.api) })
	return nil
}

// policyOf is what reports lead to, as the fleet takes it.
func policyOf(f config.Feedback) fleet.FeedbackPolicy {
	return fleet.FeedbackPolicy{
		BanFor: f.BanFor, Window: f.Window, Replace: f.ReplaceAt, Hold: f.HoldAt, HoldFor: f.HoldFor,
		Budget: f.Budget, Floor: f.Floor,
	}
}

// guard adds who may ask, and what the API proves itself with.
func (p *process) guard(options *server.Options) error {
	if p.cfg.API.TokensFile != "" {
		keys, err := access.Open(p.cfg.API.TokensFile, p.log, nil)
		if err != nil {
			return err
		}
		options.Keys = keys
	}
	if p.cfg.API.TLS != (config.TLS{}) {
		own, err := serverTLS(p.cfg.API.TLS, p.log)
		if err != nil {
			return err
		}
		options.TLS = own
	}
	return nil
}

// openAPI lets the API ask the fleet.
func (p *process) openAPI(context.Context) error {
	p.awaited.arrive(p.fleet)
	return nil
}
