package stage

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// changeUpdate answers once what was asked for is published.
const changeUpdate = "change"

// Changing are proxies of a stage that change when they are told to, and publish that as
// their workflows do. The caller closes it.
type Changing struct {
	stage   *Stage
	proxies []v1.Proxy
	worker  worker.Worker
	turn    int
}

// change is what such a proxy is, from its start until its server ends.
func change(ctx workflow.Context, p v1.Proxy) error {
	publish := func(ctx workflow.Context) error {
		if err := workflow.UpsertMemo(ctx, map[string]any{proxy.MemoProxy: p}); err != nil {
			return err
		}
		return workflow.UpsertTypedSearchAttributes(ctx, attrChanged.ValueSet(workflow.Now(ctx)))
	}
	err := workflow.SetUpdateHandler(ctx, changeUpdate, func(ctx workflow.Context, message string) error {
		p.Status.Conditions[0].Message = message
		return publish(ctx)
	})
	if err == nil {
		err = publish(ctx)
	}
	if err != nil {
		return err
	}
	return workflow.Await(ctx, func() bool { return false })
}

// Change adds proxies that can change.
func (s *Stage) Change(ctx context.Context, proxies []v1.Proxy) (*Changing, error) {
	c := &Changing{stage: s, proxies: proxies, worker: worker.New(s.Temporal, Queue, worker.Options{})}
	c.worker.RegisterWorkflowWithOptions(change, workflow.RegisterOptions{Name: proxy.WorkflowType})
	if err := c.worker.Start(); err != nil {
		return nil, err
	}
	err := c.each(ctx, func(ctx context.Context, p v1.Proxy) error {
		_, err := s.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: workflowID(p), TaskQueue: Queue, TypedSearchAttributes: found(p), Memo: map[string]any{proxy.MemoProxy: p},
		}, proxy.WorkflowType, p)
		return err
	})
	if err != nil {
		c.Close()
	}
	return c, err
}

// Again changes each of them once more, and returns once that is published.
func (c *Changing) Again(ctx context.Context) error {
	c.turn++
	message := fmt.Sprintf("running, and looked at %d times", c.turn)
	return c.each(ctx, func(ctx context.Context, p v1.Proxy) error {
		h, err := c.stage.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: workflowID(p), UpdateName: changeUpdate, Args: []any{message},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err != nil {
			return err
		}
		return h.Get(ctx, nil)
	})
}

// Close ends what they are served by.
func (c *Changing) Close() { c.worker.Stop() }

func (c *Changing) each(ctx context.Context, do func(context.Context, v1.Proxy) error) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(startAtOnce)
	for _, p := range c.proxies {
		group.Go(func() error { return do(within, p) })
	}
	return group.Wait()
}

func workflowID(p v1.Proxy) string { return proxy.WorkflowID(p.Metadata.Namespace, p.Metadata.Name) }

var attrChanged = temporal.NewSearchAttributeKeyTime("ProxyChanged")

// Settled is when what was just started counts as there for long: whoever follows a fleet
// asks again for what happened within the last minute.
const Settled = time.Minute
