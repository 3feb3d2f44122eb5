package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// pageSize is how many proxies one request to Visibility returns. Each takes about 10 KiB
// as the SDK decodes it, several times what is kept of it.
const pageSize = 250

// List returns the living proxies of a namespace, or of all for "", sorted by
// namespace and name. It reads Visibility, which lags by a moment. One that no
// worker has taken up is left out, unless this client started it.
func (c *Client) List(ctx context.Context, namespace string) ([]v1.Proxy, error) {
	if namespace != "" && !v1.IsName(namespace) {
		return nil, &v1.FieldError{Field: "metadata.namespace", Value: namespace, Problem: "is not a DNS label"}
	}
	var all []v1.Proxy
	for info, err := range c.find(ctx, running(namespace)) {
		if err != nil {
			return nil, err
		}
		p, err := c.shown(info)
		switch {
		case err == nil:
			all = append(all, p)
		case codec.IsUnreadable(err):
			// Without a key there would be none of them, or too few: no list at all is safer.
			return nil, err
		default: // one that cannot be shown does not hide the others; Get says why
		}
	}
	return once(all), nil
}

// once is what was listed in order, and each proxy once: one that continues as new between
// two pages is on both.
func once(all []v1.Proxy) []v1.Proxy {
	slices.SortFunc(all, inOrder)
	return slices.CompactFunc(all, func(a, b v1.Proxy) bool { return inOrder(a, b) == 0 })
}

// running is the query for the living proxies of a namespace, or of all for "".
func running(namespace string) string {
	return runs("=", namespace)
}

// runs is the query for the runs whose status is Running, or is not.
func runs(is, namespace string) string {
	return fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus %s 'Running' AND WorkflowId STARTS_WITH '%s'",
		proxy.WorkflowType, is, proxy.IDPrefix(namespace))
}

// find yields what Visibility finds, and holds one page of it at a time. An error is the
// last that it yields.
func (c *Client) find(ctx context.Context, query string) iter.Seq2[*workflow.WorkflowExecutionInfo, error] {
	return func(yield func(*workflow.WorkflowExecutionInfo, error) bool) {
		for next, more := []byte(nil), true; more; more = len(next) > 0 {
			page, err := c.page(ctx, query, pageSize, next)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, info := range page.GetExecutions() {
				if !yield(info, nil) {
					return
				}
			}
			next = page.GetNextPageToken()
		}
	}
}

// page is one page of what Visibility finds, with so many at the most.
func (c *Client) page(
	ctx context.Context, query string, size int, token []byte,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: query, PageSize: int32(size), NextPageToken: token, //nolint:gosec // a constant of a few hundred
	})
	return page, translate(err)
}

// allShown returns the proxies that a query finds, without those that cannot be shown.
func (c *Client) allShown(ctx context.Context, query string) (all []v1.Proxy, _ error) {
	for info, err := range c.find(ctx, query) {
		if err != nil {
			return nil, err
		}
		if p, err := c.shown(info); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
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
	// No room for more than that: there are thousands.
	all := make([]v1.Condition, len(p.Status.Conditions)+1)
	all[copy(all, p.Status.Conditions)] = c
	p.Status.Conditions = all
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
