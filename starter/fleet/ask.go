package fleet

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// Get returns a living proxy. It reads primary storage, so it is never behind, and
// needs no worker. Errors: ErrNotFound, also for one that is gone; ErrUnavailable.
func (c *Client) Get(ctx context.Context, namespace, name string) (v1.Proxy, error) {
	id := proxy.WorkflowID(namespace, name)
	d, err := c.temporal.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return v1.Proxy{}, translate(err)
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return v1.Proxy{}, fmt.Errorf("%w: %s/%s", ErrNotFound, namespace, name)
	}
	return shown(info)
}

// Timeline returns the last transitions, oldest first. It asks a worker.
func (c *Client) Timeline(ctx context.Context, namespace, name string) (events []v1.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	v, err := c.temporal.QueryWorkflow(ctx, proxy.WorkflowID(namespace, name), "", proxy.QueryTimeline)
	if err != nil {
		return nil, translate(err)
	}
	return events, v.Get(&events)
}

// WaitGone returns once the proxy's workflow has closed with nothing left. It returns
// an error when it was ended in another way: its instance is then left.
func (c *Client) WaitGone(ctx context.Context, namespace, name string) error {
	err := c.temporal.GetWorkflow(ctx, proxy.WorkflowID(namespace, name), "").Get(ctx, nil)
	if ended, ok := errors.AsType[*temporal.WorkflowExecutionError](err); ok {
		return fmt.Errorf("the workflow of %s/%s was ended before its instance was removed: %w", namespace, name, ended)
	}
	if err = translate(err); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Ready returns nil when Temporal answers.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
	return translate(err)
}
