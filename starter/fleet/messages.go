package fleet

import (
	"context"
	"errors"

	"go.temporal.io/sdk/client"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// Replace removes the instance of a proxy and has another one made. Errors: ErrNotFound,
// *ConflictError where there is no instance or the proxy is being deleted,
// *v1.FieldError, ErrUnavailable.
func (c *Client) Replace(
	ctx context.Context, namespace, name, reason string, r Request,
) (v1.Proxy, error) {
	return c.replace(ctx, namespace, name, r.ID, proxy.ReplaceInput{Only: r.only(), Reason: reason})
}

// ReplaceInstance is Replace for the instance that somebody looked at: one that was made
// since, or of a proxy of that name that was made since, is a *ConflictError.
func (c *Client) ReplaceInstance(
	ctx context.Context, namespace, name, requestID string, in proxy.ReplaceInput,
) (v1.Proxy, error) {
	return c.replace(ctx, namespace, name, requestID, in)
}

func (c *Client) replace(
	ctx context.Context, namespace, name, requestID string, in proxy.ReplaceInput,
) (v1.Proxy, error) {
	return c.message(ctx, v1.Why{Reason: in.Reason},
		update(proxy.WorkflowID(namespace, name), requestID, proxy.UpdateReplace, in))
}

// Retry tries again now what a proxy waits for. Request ID and errors are those of
// Replace; there is no conflict.
func (c *Client) Retry(
	ctx context.Context, namespace, name, reason string, r Request,
) (v1.Proxy, error) {
	return c.message(ctx, v1.Why{Reason: reason}, update(proxy.WorkflowID(namespace, name), r.ID, proxy.UpdateRetry,
		proxy.Why{Only: r.only(), Reason: reason}))
}

// Hold takes a proxy out of discovery, for a while or until Resume; another hold takes
// its place. Request ID and errors are those of Replace.
func (c *Client) Hold(
	ctx context.Context, namespace, name string, h v1.Hold, r Request,
) (v1.Proxy, error) {
	return c.message(ctx, h, update(proxy.WorkflowID(namespace, name), r.ID, proxy.UpdateHold,
		proxy.HoldInput{Only: r.only(), Reason: h.Reason, For: h.For}))
}

// Resume ends a hold. Request ID and errors are those of Replace.
func (c *Client) Resume(
	ctx context.Context, namespace, name, reason string, r Request,
) (v1.Proxy, error) {
	return c.message(ctx, v1.Why{Reason: reason}, update(proxy.WorkflowID(namespace, name), r.ID, proxy.UpdateResume,
		proxy.Why{Only: r.only(), Reason: reason}))
}

// Delete wants the proxy gone for good and returns it as it is now. Without a worker
// the wish is left with Temporal as a signal. Errors: ErrNotFound, *v1.FieldError,
// ErrUnavailable.
func (c *Client) Delete(ctx context.Context, namespace, name, reason string, r Request) (v1.Proxy, error) {
	return c.remove(ctx, namespace, name, v1.Deletion{Reason: reason}, r.only())
}

// LeaveBehind ends the proxy without waiting for its backend, and leaves what is there
// to whoever looks for orphans; WaitGone says what that is. It needs a reason.
// Otherwise it is Delete, also after one.
func (c *Client) LeaveBehind(ctx context.Context, namespace, name, reason string, r Request) (v1.Proxy, error) {
	return c.remove(ctx, namespace, name, v1.Deletion{Reason: reason, SkipCleanup: true}, r.only())
}

func (c *Client) remove(
	ctx context.Context, namespace, name string, d v1.Deletion, only proxy.Only,
) (v1.Proxy, error) {
	if err := d.Validate(); err != nil {
		return v1.Proxy{}, err
	}
	id := proxy.WorkflowID(namespace, name)
	wish := proxy.DeleteInput{Only: only, Reason: d.Reason, SkipCleanup: d.SkipCleanup}
	asked, cancel := context.WithTimeout(ctx, answerWithin/2)
	defer cancel()
	r, err := c.tell(asked, update(id, "", proxy.UpdateDelete, wish))
	// A signal cannot be refused, so a wish with a condition is never left as one.
	if err == nil || only != (proxy.Only{}) || errors.Is(err, ErrNotFound) || refusal(err) || ctx.Err() != nil {
		return r.Proxy, err
	}
	return c.leaveSignal(ctx, namespace, name, wish)
}

// leaveSignal leaves the wish with Temporal, and returns the proxy as it is shown now.
func (c *Client) leaveSignal(ctx context.Context, namespace, name string, wish proxy.DeleteInput) (v1.Proxy, error) {
	p, err := c.Get(ctx, namespace, name)
	if err != nil && !errors.Is(err, errNotTaken) {
		return v1.Proxy{}, err
	}
	p.Metadata.Namespace, p.Metadata.Name = namespace, name // also of one that has shown nothing yet
	return p, translate(c.temporal.SignalWorkflow(ctx, proxy.WorkflowID(namespace, name), "", proxy.SignalDelete, wish))
}

// message sends an update to a proxy that is there, unless it can never be right.
func (c *Client) message(
	ctx context.Context, said interface{ Validate() error }, wish client.UpdateWorkflowOptions,
) (v1.Proxy, error) {
	if err := said.Validate(); err != nil {
		return v1.Proxy{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	r, err := c.tell(ctx, wish)
	return r.Proxy, err
}

func (c *Client) tell(ctx context.Context, wish client.UpdateWorkflowOptions) (proxy.Receipt, error) {
	leave, err := c.updates.enter(ctx, wish.WorkflowID)
	if err != nil {
		return proxy.Receipt{}, translate(err)
	}
	defer leave()
	h, err := c.temporal.UpdateWorkflow(ctx, wish)
	return receipt(ctx, h, err)
}

// refusal reports whether a workflow answered, and said no.
func refusal(err error) bool {
	return errors.Is(err, ErrConflict) || isAny[*v1.FieldError](err)
}
