package activities

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// Instances wraps each provider call as one activity.
type Instances struct {
	// Lookup returns a configured provider, in its decorators.
	Lookup func(name string) (providers.Provider, bool)
	// Installation marks what is created; a configured DNS label.
	Installation string
	// SecretsDir holds the content of secretRefs as <name>/<key>; empty for none.
	SecretsDir string
}

// CreateInput asks for one instance. Serialised in history: it holds user-data only
// where the spec has it inline.
type CreateInput struct {
	Provider  string              `json:"provider"`
	UID       string              `json:"uid"`
	Attempt   int                 `json:"attempt"`
	Owner     string              `json:"owner"`
	Labels    map[string]string   `json:"labels,omitempty"`
	SpecMark  string              `json:"specMark"`
	Placement providers.Placement `json:"placement,omitzero"`
	CloudInit v1.CloudInit        `json:"cloudInit,omitzero"`
	// Digest is what the user-data of a secretRef is expected to be.
	Digest string `json:"digest,omitempty"`
	Port   int    `json:"port"`
}

// Created is the outcome of a create.
type Created struct {
	ID string `json:"id"`
}

// InstanceRef names one instance on one provider.
type InstanceRef struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
}

// OwnRef names the instance of one UID on one provider, its ID being unknown.
type OwnRef struct {
	Provider string `json:"provider"`
	UID      string `json:"uid"`
}

// Answer is what a look at the backend came to. Exactly one field is set.
type Answer struct {
	Instance *providers.Instance `json:"instance,omitempty"`
	Gone     bool                `json:"gone,omitempty"`
	// CreateFailed is a create that was accepted and failed later.
	CreateFailed *Fault `json:"createFailed,omitempty"`
}

// CreateInstance creates the instance of the UID, or finds it, and returns its ID.
func (a *Instances) CreateInstance(ctx context.Context, in CreateInput) (out Created, err error) {
	err = a.call(ctx, in.Provider, func(ctx context.Context, p providers.Provider) error {
		userData, err := a.userData(in)
		if err != nil {
			return err
		}
		out.ID, err = p.Create(ctx, providers.CreateRequest{
			Name: providers.NameFromUID(in.UID), UID: in.UID, Attempt: in.Attempt,
			Installation: a.Installation, Owner: in.Owner, Labels: in.Labels, SpecMark: in.SpecMark,
			Placement: in.Placement, CloudInit: userData, Port: in.Port,
		})
		return err
	})
	return out, err
}

// GetInstance reads one instance. That it is gone, or that its create failed late,
// is an answer and no error.
func (a *Instances) GetInstance(ctx context.Context, ref InstanceRef) (out Answer, err error) {
	err = a.call(ctx, ref.Provider, func(ctx context.Context, p providers.Provider) error {
		out, err = answer(p.Get(ctx, ref.ID))
		return err
	})
	return out, err
}

// FindInstance looks for the instance that carries the UID: it resolves a create
// whose outcome nobody knows.
func (a *Instances) FindInstance(ctx context.Context, own OwnRef) (out Answer, err error) {
	err = a.call(ctx, own.Provider, func(ctx context.Context, p providers.Provider) error {
		list, err := p.ListByTag(ctx)
		out = Answer{Gone: true}
		for i := range list {
			if list[i].UID == own.UID {
				out = Answer{Instance: &list[i]}
			}
		}
		return err
	})
	return out, err
}

// DeleteInstance asks the backend to remove the instance.
func (a *Instances) DeleteInstance(ctx context.Context, ref InstanceRef) error {
	return a.call(ctx, ref.Provider, func(ctx context.Context, p providers.Provider) error {
		return p.Delete(ctx, ref.ID)
	})
}

// answer tells what Get said from why it could not say anything.
func answer(inst *providers.Instance, err error) (Answer, error) {
	switch {
	case err == nil && inst != nil:
		shown := *inst
		shown.SpecMark = "" // history needs no copy of it
		return Answer{Instance: &shown}, nil
	case err == nil:
		return Answer{}, providers.Wrap(providers.ErrTransient, providers.OpGet, "", "",
			fmt.Errorf("the provider returned neither an instance nor an error"))
	case providers.IsCreateFailed(err):
		f := faultFrom(err)
		return Answer{CreateFailed: &f}, nil
	case providers.ClassOf(err) == providers.ErrNotFound:
		return Answer{Gone: true}, nil
	default:
		return Answer{}, err
	}
}

// call finds the provider, gives the call a deadline of its own, beats while it
// runs and puts its error on the wire.
func (a *Instances) call(ctx context.Context, name string, do func(context.Context, providers.Provider) error) error {
	p, ok := a.Lookup(name)
	if !ok {
		return ToApplicationError(providers.Wrap(providers.ErrPermanent, "lookup", name, "", errNotConfigured))
	}
	ctx, cancel := withinAttempt(logging(ctx, name))
	defer cancel()
	ctx, stop := beating(ctx)
	defer stop()
	return lastWord(ctx, ToApplicationError(do(ctx, p)))
}

// logging returns a context whose logger names the proxy and the provider.
func logging(ctx context.Context, provider string) context.Context {
	return providers.WithLogger(ctx, providers.Logger(ctx).With(
		slog.String("workflow", activity.GetInfo(ctx).WorkflowExecution.ID), slog.String("provider", provider)))
}

// withinAttempt ends a call before its attempt ends: what the backend said last
// then reaches the workflow instead of a bare timeout.
func withinAttempt(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*4/5)
}

// lastWord ends the server's retries once their window has passed, however long
// one attempt may take.
func lastWord(ctx context.Context, err error) error {
	if err == nil || time.Since(activity.GetInfo(ctx).ScheduledTime) < retryWindow {
		return err
	}
	f := FaultOf(err)
	return temporal.NewApplicationErrorWithOptions(f.Text, string(f.Class), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{f.Reason},
	})
}

// beating returns a context whose progress becomes heartbeats, and beats by itself
// until stop is called, so that a dead worker is noticed early.
func beating(ctx context.Context) (context.Context, func()) {
	if activity.GetInfo(ctx).HeartbeatTimeout == 0 {
		return ctx, func() {}
	}
	reported := providers.WithProgress(ctx, func(done, total int64, what string) {
		activity.RecordHeartbeat(ctx, fmt.Sprintf("%s: %d of %d", what, done, total))
	})
	stopped := make(chan struct{})
	go func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-stopped:
				return
			}
		}
	}()
	return reported, func() { close(stopped) }
}
