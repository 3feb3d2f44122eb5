// Package fleet is the typed client of the fleet: the only room that starts, updates,
// signals or queries a workflow. It imports api/v1, the names of workflows and the
// Temporal client. Start reading at Client.Apply; errors.go says what can go wrong.
package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// answerWithin is how long a worker has for an update. A caller's shorter deadline
// holds.
const answerWithin = 8 * time.Second

// maxSpec bounds a spec as JSON, in bytes: a server takes 2 MiB at a time, and a start
// carries it twice with its answer.
const maxSpec = 900 << 10

// Client starts and asks the workflows of one installation. It is safe for
// concurrent use.
type Client struct {
	temporal     client.Client
	installation string
	taskQueue    string
	updates      gate
	memos        converter.DataConverter
	following    *follower
}

// Option changes how a new client behaves.
type Option func(*Client)

// WithTaskQueue starts workflows on another task queue than the usual one.
func WithTaskQueue(name string) Option {
	return func(c *Client) { c.taskQueue = name }
}

// WithDataConverter reads memos with the converter that wrote them, which is that of the
// Temporal client.
func WithDataConverter(dc converter.DataConverter) Option {
	return func(c *Client) { c.memos = dc }
}

// New returns a client that uses, and does not own, a Temporal client.
func New(c client.Client, installation string, opts ...Option) *Client {
	fleet := &Client{
		temporal: c, installation: installation, taskQueue: proxy.TaskQueue, updates: newGate(),
		memos: converter.GetDefaultDataConverter(),
	}
	fleet.following = newFollower(fleet)
	for _, opt := range opts {
		opt(fleet)
	}
	return fleet
}

// Apply starts the proxy if there is none, and makes p's spec and labels the wanted
// ones. created says that this request's start made it. Repeating a request ID
// repeats its answer, as long as the proxy's last run is kept. Errors: *v1.FieldError, *ConflictError, ErrUnavailable.
func (c *Client) Apply(
	ctx context.Context, p v1.Proxy, ask Request,
) (applied v1.Proxy, created bool, err error) {
	if err := validate(p); err != nil {
		return v1.Proxy{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	id := proxy.WorkflowID(p.Metadata.Namespace, p.Metadata.Name)
	leave, err := c.updates.enter(ctx, id)
	if err != nil {
		return v1.Proxy{}, false, translate(err)
	}
	defer leave()
	r, err := c.apply(ctx, id, p, ask)
	if errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w (Temporal may have the wish already; asking again is harmless)", err)
	}
	return r.Proxy, r.BornOf == ask.ID, err
}

// apply sends the update, and starts what it is for. A stand-in for user-data is only
// good for a proxy that is there: alone it must start nothing.
func (c *Client) apply(
	ctx context.Context, id string, p v1.Proxy, ask Request,
) (proxy.Receipt, error) {
	wish := update(id, ask.ID, proxy.UpdateApply, proxy.ApplyInput{
		Only: ask.only(), Spec: p.Spec, Labels: p.Metadata.Labels,
	})
	if redacted := p.Spec.CloudInit.IsRedacted(); redacted || ask.IfGeneration != 0 {
		h, err := c.temporal.UpdateWorkflow(ctx, wish)
		r, err := receipt(ctx, h, err)
		if redacted && errors.Is(err, ErrNotFound) {
			err = &v1.FieldError{
				Field: "spec.cloudInit.inline", Value: p.Spec.CloudInit.Inline,
				Problem: "stands for the content of a proxy that is not there; give the content itself",
			}
		}
		return r, err
	}
	h, err := c.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.startOperation(id, p, ask.ID), UpdateOptions: wish,
	})
	return receipt(ctx, h, err)
}

func (c *Client) startOperation(id string, p v1.Proxy, requestID string) client.WithStartWorkflowOperation {
	return c.temporal.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: id, TaskQueue: c.taskQueue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            fmt.Sprintf("proxy %s/%s on %s", p.Metadata.Namespace, p.Metadata.Name, p.Spec.Provider),
		Memo:                     map[string]any{proxy.MemoProxy: pending(p)},
	}, proxy.WorkflowType, proxy.Input{Spec: p.Spec, Labels: p.Metadata.Labels, RequestID: requestID})
}

// pending is what is shown of a proxy until a worker has taken it up: its UID is
// added from its workflow.
func pending(p v1.Proxy) v1.Proxy {
	return v1.Proxy{
		Metadata: v1.Metadata{
			Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, Labels: p.Metadata.Labels, Generation: 1,
		},
		Spec: p.Spec.Redacted(), Status: v1.ProxyStatus{Phase: v1.PhasePending},
	}
}

func validate(p v1.Proxy) error {
	if err := p.Metadata.Validate(); err != nil {
		return err
	}
	if err := p.Spec.Validate(); err != nil {
		return err
	}
	raw, err := json.Marshal(p.Spec)
	if err == nil && len(raw) > maxSpec {
		return &v1.FieldError{
			Field: "spec.cloudInit", Value: fmt.Sprintf("%d bytes as JSON", len(raw)),
			Problem: fmt.Sprintf("is more than %d; use inlineBase64 or secretRef", maxSpec),
		}
	}
	return err
}

func update(workflowID, updateID, name string, arg any) client.UpdateWorkflowOptions {
	return client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateID: updateID, UpdateName: name, Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	}
}

func receipt(ctx context.Context, h client.WorkflowUpdateHandle, err error) (r proxy.Receipt, _ error) {
	if err == nil {
		err = h.Get(ctx, &r)
	}
	r.Proxy = withOpenProxy(r.Proxy)
	return r, translate(err)
}
