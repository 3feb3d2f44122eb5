package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	namespace = "default"
	// answerWithin is how long a client waits for an answer.
	answerWithin = 8 * time.Second
	// retryAfter is how long a client waits before it says the same again.
	retryAfter = 500 * time.Millisecond
	// refusedFor is how long a client goes on asking for what is refused.
	refusedFor = 10 * time.Second
)

// errRefused is an operation that this proxy does not allow now.
var errRefused = errors.New("refused")

// customer is the client of one proxy: it says one thing after the other, and each one
// again under the same request ID until it is accepted.
type customer struct {
	fleet    *fleet.Client
	temporal sdk.Client
	accepted *atomic.Int64
	wish     wish
}

// run carries out a script until the storm is over; an operation that has begun is
// brought to its end as long as ctx lasts.
func (c *customer) run(ctx, storm context.Context, ops []operation) {
	for _, op := range ops {
		select {
		case <-time.After(op.After):
		case <-storm.Done():
			return
		}
		if op.Kind == kindCreate && !c.gone(storm) {
			return
		}
		if op.Renew {
			_ = c.temporal.SignalWorkflow(ctx, c.id(), "", proxy.SignalHint, proxy.Hint{Renew: true})
		}
		if !c.persist(ctx, op) {
			return
		}
	}
}

// persist repeats an operation until it is accepted or refused for long; false when
// ctx ended before.
func (c *customer) persist(ctx context.Context, op operation) bool {
	begun := time.Now()
	for try := 1; ; try++ {
		c.wish.Open = string(op.Kind)
		p, err := c.ask(ctx, op)
		switch {
		case err == nil:
			c.accept(op, p, try)
			return true
		case errors.Is(err, errRefused) && time.Since(begun) > refusedFor:
			c.wish.Open = ""
			return true
		}
		c.wish.Open = string(op.Kind) + ": " + err.Error()
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return false
		}
	}
}

// accept remembers what was promised. Which instance a replace is about is only
// certain from the first answer.
func (c *customer) accept(op operation, p v1.Proxy, try int) {
	c.accepted.Add(1)
	c.wish.Open = ""
	switch op.Kind {
	case kindCreate:
		c.wish.Living, c.wish.Held, c.wish.Spec = true, false, op.Spec
	case kindChange:
		c.wish.Spec = op.Spec
	case kindHold, kindResume:
		c.wish.Held = op.Kind == kindHold
	case kindDelete:
		c.wish.Living = false
	case kindReplace:
		if try == 1 {
			c.wish.Replaced = p.Status.ProviderID
		}
	}
}

func (c *customer) ask(ctx context.Context, op operation) (v1.Proxy, error) {
	switch op.Kind {
	case kindCreate, kindChange:
		p := v1.Proxy{Metadata: v1.Metadata{Namespace: namespace, Name: c.wish.Name}, Spec: op.Spec}
		p, _, err := c.fleet.Apply(ctx, p, fleet.Request{ID: op.RequestID})
		return p, err
	case kindDelete:
		p, err := c.fleet.Delete(ctx, namespace, c.wish.Name, "chaos", fleet.Request{})
		if errors.Is(err, fleet.ErrNotFound) {
			err = nil // it was accepted before, and its answer was lost
		}
		return p, err
	case kindHold:
		return c.tell(ctx, op, proxy.HoldInput{Reason: "Chaos"})
	case kindReplace, kindResume:
		return c.tell(ctx, op, proxy.Why{Reason: "chaos"})
	default:
		return v1.Proxy{}, errors.New("no such operation: " + string(op.Kind))
	}
}

// tell sends an update under the operation's request ID.
func (c *customer) tell(ctx context.Context, op operation, arg any) (v1.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	h, err := c.temporal.UpdateWorkflow(ctx, sdk.UpdateWorkflowOptions{
		WorkflowID: c.id(), UpdateID: op.RequestID, UpdateName: string(op.Kind), Args: []any{arg},
		WaitForStage: sdk.WorkflowUpdateStageCompleted,
	})
	var r proxy.Receipt
	if err == nil {
		err = h.Get(ctx, &r)
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == proxy.ErrConflict {
		err = errors.Join(errRefused, err)
	}
	return r.Proxy, err
}

// gone waits until there is no proxy of the name; false when the storm is over first.
func (c *customer) gone(storm context.Context) bool {
	for {
		if _, err := c.fleet.Get(storm, namespace, c.wish.Name); errors.Is(err, fleet.ErrNotFound) {
			return true
		}
		select {
		case <-time.After(retryAfter):
		case <-storm.Done():
			return false
		}
	}
}

func (c *customer) id() string { return proxy.WorkflowID(namespace, c.wish.Name) }
