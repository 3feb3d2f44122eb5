// Package fake is an in-memory provider that meets the contract, and Faults, which
// makes one fail. It is the backend of the workflow and activity tests and the
// reference for testsuite/providertest. It imports only the contract.
// Start reading at Provider; options.go and handles.go say what a test can steer.
package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

var (
	_ providers.Provider    = (*Provider)(nil)
	_ providers.Checker     = (*Provider)(nil)
	_ providers.Profiler    = (*Provider)(nil)
	_ providers.Inventorier = (*Provider)(nil)
)

// location is the first half of every ID.
const location = "mem"

// idForm is what ID returns: mem/<DNS label>.
var idForm = regexp.MustCompile(`^mem/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ID returns the ID of the instance with a name: mem/<name>.
func ID(name string) string { return location + "/" + name }

// Provider keeps its instances in a map. It is safe for concurrent use.
type Provider struct {
	name         string
	installation string
	slowDelete   bool
	provisioning bool
	*backend
}

// backend outlives the providers that talk to it.
type backend struct {
	mu        sync.Mutex
	instances map[string]*instance
	requests  []providers.CreateRequest
	address   netip.Addr // the last one handed out
	failNext  *failNext  // what the next create fails with, late
}

// instance is one entry of the backend.
type instance struct {
	providers.Instance
	hidden  bool
	attempt int
	failed  *failNext // the create was accepted and failed
}

type failNext struct {
	class providers.Class
	text  string
}

// New returns an empty provider of the installation "test". Without options an
// instance runs as soon as it is created and is gone as soon as it is deleted.
func New(name string, opts ...Option) *Provider {
	p := &Provider{name: name, installation: DefaultInstallation, backend: &backend{
		instances: map[string]*instance{}, address: netip.AddrFrom4([4]byte{127, 0, 0, 0}),
	}}
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

// Create is idempotent by name. A name that another UID or installation holds, and
// one that is no DNS label, are Permanent. A create that failed late is made anew
// by a higher Attempt only.
func (p *Provider) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	id := ID(req.Name)
	if err := p.check(ctx, providers.OpCreate, id); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, clone(req))
	req.Installation = cmp.Or(req.Installation, p.installation)
	have, ok := p.instances[id]
	if ok && (have.UID != req.UID || have.Installation != req.Installation) {
		return "", p.wrap(providers.ErrPermanent, providers.OpCreate, id, foreign(have, req))
	}
	if !ok || have.failed != nil && req.Attempt > have.attempt {
		p.instances[id] = p.make(id, req)
	}
	return id, nil
}

// make returns a new entry. The caller holds the lock.
func (p *Provider) make(id string, req providers.CreateRequest) *instance {
	made := &instance{attempt: req.Attempt, failed: p.failNext, Instance: providers.Instance{
		ID: id, State: providers.StateProvisioning,
		UID: req.UID, Installation: req.Installation, Owner: req.Owner, SpecMark: req.SpecMark,
		CreatedAt: time.Now(),
	}}
	p.failNext = nil
	if !p.provisioning {
		p.run(made)
	}
	return made
}

// run gives an instance an address and lets it run. The caller holds the lock.
func (p *Provider) run(i *instance) {
	p.address = p.address.Next()
	i.IP, i.State, i.Reason = p.address.String(), providers.StateRunning, ""
}

// Get reads one instance.
func (p *Provider) Get(ctx context.Context, id string) (*providers.Instance, error) {
	if err := p.check(ctx, providers.OpGet, id); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.instances[id]
	switch {
	case !ok || i.hidden:
		return nil, p.wrap(providers.ErrNotFound, providers.OpGet, id, errors.New("no such instance"))
	case i.failed != nil:
		return nil, p.wrap(i.failed.class, providers.OpCreate, id, errors.New(i.failed.text))
	}
	shown := i.Instance
	return &shown, nil
}

// Delete removes the instance, at once or when FinishDeletes is called.
func (p *Provider) Delete(ctx context.Context, id string) error {
	if err := p.check(ctx, providers.OpDelete, id); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.instances[id]
	if ok && p.slowDelete && i.failed == nil {
		i.Deleting = true
		return nil
	}
	delete(p.instances, id)
	return nil
}

// ListByTag returns the marked instances of the provider's installation, in the
// order of their IDs.
func (p *Provider) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	inventory, err := p.Inventory(ctx)
	return inventory.Instances, err
}

// Inventory is ListByTag: there are no leftovers here.
func (p *Provider) Inventory(ctx context.Context) (providers.Inventory, error) {
	if err := ctx.Err(); err != nil {
		return providers.Inventory{}, p.wrap(providers.ErrTransient, providers.OpList, "", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := providers.Inventory{Instances: []providers.Instance{}}
	for _, id := range slices.Sorted(maps.Keys(p.instances)) {
		i := p.instances[id]
		if !i.hidden && i.failed == nil && i.Installation == p.installation {
			out.Instances = append(out.Instances, i.Instance)
		}
	}
	return out, nil
}

// Check says that memory is there, unless ctx has ended.
func (p *Provider) Check(ctx context.Context) []providers.TargetStatus {
	if ctx.Err() != nil {
		return []providers.TargetStatus{{Target: location, Reason: providers.ReasonTimeout, Message: ctx.Err().Error()}}
	}
	return []providers.TargetStatus{{Target: location, Ready: true, Reason: providers.ReasonReachable}}
}

// check refuses a call whose context has ended or whose ID is malformed.
func (p *Provider) check(ctx context.Context, op, id string) error {
	if err := ctx.Err(); err != nil {
		return p.wrap(providers.ErrTransient, op, id, err)
	}
	if !idForm.MatchString(id) {
		return p.wrap(providers.ErrPermanent, op, id, fmt.Errorf("malformed id %q, want %s/<DNS label>", id, location))
	}
	return nil
}

func (p *Provider) wrap(class providers.Class, op, id string, err error) error {
	return providers.Wrap(class, op, p.name, id, err)
}

// foreign names what holds the name and what asked for it.
func foreign(have *instance, req providers.CreateRequest) error {
	return &providers.ForeignError{
		Found:  providers.Holder{UID: have.UID, Installation: have.Installation},
		Wanted: providers.Holder{UID: req.UID, Installation: req.Installation},
	}
}

// clone keeps a recorded request from changing with its caller's maps and bytes.
func clone(req providers.CreateRequest) providers.CreateRequest {
	req.Labels = maps.Clone(req.Labels)
	req.CloudInit = slices.Clone(req.CloudInit)
	return req
}
