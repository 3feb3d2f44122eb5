// Package fake is an in-memory provider that meets the contract in every way that
// the contract allows, and Faults, which makes one fail. It is the backend of the
// workflow and activity tests and the reference of testsuite/providertest. It imports
// the contract and the API of OpenTelemetry.
// Start reading at Provider; options.go has the choices, backend.go what it talks to,
// handles.go and weather.go what a test can do to that.
package fake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

var (
	_ providers.Provider    = (*Provider)(nil)
	_ providers.Checker     = (*Provider)(nil)
	_ providers.Profiler    = (*Provider)(nil)
	_ providers.Inventorier = (*Provider)(nil)
)

// Provider keeps its instances in a backend in memory, in the way that its profile
// says. It is safe for concurrent use.
type Provider struct {
	name         string
	installation string
	profile      providers.Profile
	pace         int
	callTimeout  time.Duration
	maxCloudInit int // bytes; 0: no limit
	credential   Credential
	*backend
}

// New returns an empty provider of the installation "test". Without options an
// instance runs as soon as it is created and is gone as soon as it is deleted.
func New(name string, opts ...Option) *Provider {
	p := &Provider{
		name: name, installation: DefaultInstallation, profile: defaultProfile(),
		callTimeout: defaultCallTimeout, backend: newBackend(),
	}
	p.credential = p.currentToken
	for _, opt := range opts {
		opt(p)
	}
	return p
}

// Reopen returns another provider over the same backend, as after a restart.
func (p *Provider) Reopen() *Provider {
	again := *p
	return &again
}

// Get reads one instance.
func (p *Provider) Get(ctx context.Context, id string) (*providers.Instance, error) {
	return operate(ctx, p, target{op: providers.OpGet, id: id}, func(ctx context.Context) (*providers.Instance, error) {
		found, err := p.read(ctx, id)
		if err != nil {
			return nil, err
		}
		if found.failed != nil {
			return nil, p.wrap(found.failed.class, providers.OpCreate, id, errors.New(found.failed.text))
		}
		shown := p.view(found)
		return &shown, nil
	})
}

// Delete removes the instance and its volume: at once, after a while, or when
// FinishDeletes is called.
func (p *Provider) Delete(ctx context.Context, id string) error {
	_, err := operate(ctx, p, target{op: providers.OpDelete, id: id}, func(ctx context.Context) (any, error) {
		return nil, p.remove(ctx, id)
	})
	return err
}

// ListByTag returns the marked instances of the provider's installation, in the
// order of their IDs.
func (p *Provider) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	inventory, err := p.Inventory(ctx)
	return inventory.Instances, err
}

// Check has one entry for each location. Where capacity cannot be told from other
// failures, it tells how many instances there are.
func (p *Provider) Check(ctx context.Context) []providers.TargetStatus {
	targets := make([]providers.TargetStatus, 0, len(locations()))
	for _, at := range locations() {
		status := providers.TargetStatus{Target: at, Ready: true, Reason: providers.ReasonReachable}
		count, err := call(ctx, p, request{what: "instances.count", location: at}, func() (int, error) {
			return p.count(at), nil
		})
		switch {
		case ctx.Err() != nil:
			status = providers.TargetStatus{Target: at, Reason: providers.ReasonTimeout, Message: ctx.Err().Error()}
		case err != nil:
			status = providers.TargetStatus{Target: at, Reason: providers.ReasonUnreachable, Message: err.Error()}
		case p.profile.Quota == providers.QuotaAbsent:
			status.Details = map[string]string{"instances": fmt.Sprint(count)}
		}
		targets = append(targets, status)
	}
	return targets
}

// operate runs one operation: it refuses what cannot be asked, classifies what went
// wrong and logs the outcome.
func operate[T any](ctx context.Context, p *Provider, at target, run func(context.Context) (T, error)) (T, error) {
	out, err := func() (T, error) {
		var none T
		if err := p.check(ctx, at); err != nil {
			return none, err
		}
		return run(ctx)
	}()
	if err != nil {
		var none T
		out, err = none, p.classified(at, err)
	}
	p.logOutcome(ctx, at, err)
	return out, err
}

// check refuses a call whose context has ended or whose ID is malformed.
func (p *Provider) check(ctx context.Context, at target) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if at.op == providers.OpList {
		return nil
	}
	form := p.idForm()
	if at.op == providers.OpCreate || at.op == providers.OpPrepare {
		form = nameIsKeyForm
	}
	if !form.MatchString(at.id) {
		return p.wrap(providers.ErrPermanent, at.op, at.id,
			fmt.Errorf("malformed id %q, want <location>/<DNS label>", at.id))
	}
	return nil
}
