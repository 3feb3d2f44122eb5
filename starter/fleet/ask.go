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
	return c.shown(info)
}

// Timeline returns the last transitions of a living proxy, oldest first. It asks a
// worker. Errors: ErrNotFound, also for one that is gone; ErrUnavailable.
func (c *Client) Timeline(ctx context.Context, namespace, name string) (events []v1.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answer, err := c.temporal.QueryWorkflowWithOptions(ctx, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: proxy.WorkflowID(namespace, name), QueryType: proxy.QueryTimeline,
		QueryRejectCondition: enums.QUERY_REJECT_CONDITION_NOT_OPEN,
	})
	switch {
	case err != nil:
		return nil, translate(err)
	case answer.QueryRejected != nil:
		return nil, fmt.Errorf("%w: %s/%s", ErrNotFound, namespace, name)
	}
	return events, answer.QueryResult.Get(&events)
}

// WaitGone returns once the proxy's workflow has closed with nothing left. Errors:
// *LeftError when it was told to leave what is there; another one when it was ended by
// force, and its instance is left, too.
func (c *Client) WaitGone(ctx context.Context, namespace, name string) error {
	var r proxy.Result
	id := proxy.WorkflowID(namespace, name)
	err := c.temporal.GetWorkflow(ctx, id, "").Get(ctx, &r)
	if ended, ok := errors.AsType[*temporal.WorkflowExecutionError](err); ok {
		return fmt.Errorf("the workflow of %s/%s was ended before its instance was removed: %w", namespace, name, ended)
	}
	switch err = translate(err); {
	case errors.Is(err, ErrNotFound):
		return nil
	case err == nil && r.Left != "":
		p, _ := c.last(ctx, id) // what is left is told all the same
		return &LeftError{Proxy: p, Left: r.Left, Reason: r.Reason}
	default:
		return err
	}
}

// last returns a proxy as its last workflow showed it in the end.
func (c *Client) last(ctx context.Context, id string) (v1.Proxy, error) {
	d, err := c.temporal.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return v1.Proxy{}, translate(err)
	}
	return c.shown(d.RawResponse.GetWorkflowExecutionInfo())
}

// Ready returns nil when Temporal answers.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
	return translate(err)
}
