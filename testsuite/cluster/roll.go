//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// builds are those that the workers are rolled to. Before the first they have none.
func builds() []string { return []string{"v1", "v2"} }

func newest() string { return builds()[len(builds())-1] }

// roll brings the workers from no version to one, and from that to a newer one, while all
// proxies change.
func (w *world) roll(ctx context.Context) error {
	for _, build := range builds() {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			return w.each(ctx, func(ctx context.Context, c *customer) error { c.pause(ctx); return c.change(ctx) })
		})
		group.Go(func() error { return w.rollTo(ctx, build) })
		if err := group.Wait(); err != nil {
			return err
		}
		if err := w.settle(context.WithoutCancel(ctx), "after the roll to "+build); err != nil {
			return err
		}
	}
	return w.moved(ctx, newest())
}

// rollTo starts one worker after the other anew with a build. It becomes the current one
// when the first of them takes work: until then the other one serves.
func (w *world) rollTo(ctx context.Context, build string) error {
	for n, p := range w.workers {
		if err := w.countFailed(ctx, n); err != nil {
			return err
		}
		took, err := p.Stop()
		if err != nil {
			return err
		}
		p.Argv = append(p.Argv[:3:3], "--deployment-name", deployment, "--deployment-build", build)
		if err := w.startReady(ctx, p, workerHost(n)); err != nil {
			return err
		}
		w.say("%s ended %s after SIGTERM, and is build %s", p.Name, took.Round(time.Millisecond), build)
		if n > 0 {
			continue
		}
		if err := w.makeCurrent(ctx, build); err != nil {
			return err
		}
		w.say("build %s is current", build)
	}
	return nil
}

// makeCurrent gives the work to the workers of a build. Temporal learns of a version by its
// first poll, and writes it down by a workflow of its own: where both its servers have been
// killed shortly before, that one takes its time, too.
func (w *world) makeCurrent(ctx context.Context, build string) error {
	return w.until(ctx, settleWithin, "build "+build+" becomes the current one", func(ctx context.Context) error {
		return w.cli(ctx, "worker", "deployment", "set-current-version", "--deployment-name", deployment,
			"--build-id", build, "--yes")
	})
}

// moved begins a new run of every proxy, as an operator who does not want to wait does, and
// counts those that are on the build then.
func (w *world) moved(ctx context.Context, build string) error {
	for _, c := range w.customers {
		id := proxy.WorkflowID("default", c.wish.Name)
		if err := w.temporal.SignalWorkflow(ctx, id, "", proxy.SignalHint, proxy.Hint{Renew: true}); err != nil {
			return err
		}
	}
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND "+
		"TemporalWorkerDeploymentVersion = '%s:%s' AND TemporalWorkflowVersioningBehavior = 'AutoUpgrade'",
		proxy.WorkflowType, deployment, build)
	err := w.until(ctx, settleWithin, "all proxies move to build "+build, func(ctx context.Context) error {
		counted, err := w.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err == nil && counted.GetCount() != proxies {
			err = fmt.Errorf("%d of %d have", counted.GetCount(), proxies)
		}
		return err
	})
	if err != nil {
		return err
	}
	w.say("all workflows go on with build %s", build)
	return w.settle(ctx, "after all moved to "+build)
}
