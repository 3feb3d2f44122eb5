package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// pageSize is how many proxies one request to Visibility returns.
const pageSize = 1000

// List returns the living proxies of a namespace, or of all for "", sorted by
// namespace and name. It reads Visibility, which lags by a moment. One that no
// worker has taken up is left out, unless this client started it.
func (c *Client) List(ctx context.Context, namespace string) ([]v1.Proxy, error) {
	if namespace != "" && !v1.IsName(namespace) {
		return nil, &v1.FieldError{Field: "metadata.namespace", Value: namespace, Problem: "is not a DNS label"}
	}
	var all []v1.Proxy
	err := c.each(ctx, running(namespace), func(info *workflow.WorkflowExecutionInfo) error {
		p, err := c.shown(info)
		switch {
		case err == nil:
			all = append(all, p)
		case codec.IsUnreadable(err):
			// Without a key there would be none of them, or too few: no list at all is safer.
			return err
		default: // one that cannot be shown does not hide the others; Get says why
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, inOrder)
	// A proxy that continues as new between two pages is on both.
	return slices.CompactFunc(all, func(a, b v1.Proxy) bool { return inOrder(a, b) == 0 }), nil
}

// running is the query for the living proxies of a namespace, or of all for "".
func running(namespace string) string {
	return fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH '%s'",
		proxy.WorkflowType, proxy.IDPrefix(namespace))
}

// find returns what Visibility finds.
func (c *Client) find(ctx context.Context, query string) (all []*workflow.WorkflowExecutionInfo, err error) {
	err = c.each(ctx, query, func(info *workflow.WorkflowExecutionInfo) error {
		all = append(all, info)
		return nil
	})
	return all, err
}

// each hands on what Visibility finds, one after the other. A page is read while the one
// before it is worked through, and then let go of: all of them would be megabytes.
func (c *Client) each(ctx context.Context, query string, do func(*workflow.WorkflowExecutionInfo) error) error {
	pages := make(chan []*workflow.WorkflowExecutionInfo)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(pages)
		return translate(c.pages(ctx, query, pages))
	})
	group.Go(func() error {
		for page := range pages {
			for _, info := range page {
				if err := do(info); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return group.Wait()
}

// pages reads one page after the other.
func (c *Client) pages(ctx context.Context, query string, out chan<- []*workflow.WorkflowExecutionInfo) error {
	var next []byte
	for {
		page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: pageSize, NextPageToken: next,
		})
		if err != nil {
			return err
		}
		select {
		case out <- page.GetExecutions():
		case <-ctx.Done():
			return ctx.Err()
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return nil
		}
	}
}

func inOrder(a, b v1.Proxy) int {
	return cmp.Or(
		strings.Compare(a.Metadata.Namespace, b.Metadata.Namespace),
		strings.Compare(a.Metadata.Name, b.Metadata.Name),
	)
}

// errNotTaken is a proxy that was started without this client, and that no worker
// has looked at: whether its input can be right is not known.
var errNotTaken = errors.New("no worker has taken the proxy up yet")

// shown is the Proxy that a workflow publishes, or is to be as it was started.
func (c *Client) shown(info *workflow.WorkflowExecutionInfo) (v1.Proxy, error) {
	p, err := c.published(info)
	if err == nil && p.Metadata.UID == "" { // as it was started
		p.Metadata.UID, p.Metadata.CreatedAt = info.GetFirstRunId(), info.GetStartTime().AsTime()
		p.Status.Since = p.Metadata.CreatedAt
	}
	return withOpenProxy(p), err
}

// withOpenProxy says of a running proxy that nobody has looked at from outside, where it
// shows nothing else. No workflow says so itself: it would be one event more in each.
func withOpenProxy(p v1.Proxy) v1.Proxy {
	if _, known := p.Status.Condition(v1.ConditionOpenProxy); known || p.Status.Phase != v1.PhaseRunning {
		return p
	}
	c := v1.NoSecondProber()
	c.LastTransitionTime = p.Status.Since
	p.Status.Conditions = append(p.Status.Conditions, c)
	return p
}

// published reads the memo of a workflow as it is.
func (c *Client) published(info *workflow.WorkflowExecutionInfo) (v1.Proxy, error) {
	id := info.GetExecution().GetWorkflowId()
	memo, ok := info.GetMemo().GetFields()[proxy.MemoProxy]
	if !ok {
		return v1.Proxy{}, fmt.Errorf("%w: %s: %w", ErrNoWorker, id, errNotTaken)
	}
	var p v1.Proxy
	if err := c.memos.FromPayload(memo, &p); err != nil {
		return p, fmt.Errorf("reading the memo of %s: %w", id, err)
	}
	return p, nil
}
