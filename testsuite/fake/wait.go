package fake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// The caps on a wait, so that no call hangs for ever whatever a test does.
const (
	maxWait  = 30 * time.Second
	maxLooks = 1000
)

var errTooLong = errors.New("the backend takes too long")

// settle waits for what the profile promises of a create: that reads see it, that it
// has been started, that it runs.
func (p *Provider) settle(ctx context.Context, id string) error {
	return p.await(ctx, id, func(i *instance) (bool, error) {
		switch {
		case i == nil:
			return false, errDying(id)
		case i.lag > 0:
			return false, nil
		case p.profile.CreateReturn == providers.CreateBlocking && i.failed != nil:
			return false, &providers.Error{Class: i.failed.class, Err: errors.New(i.failed.text)}
		case p.profile.CreateReturn == providers.CreateBlocking:
			return p.view(i).State != providers.StateProvisioning || p.undiscovered(i), nil
		case p.profile.ProvisioningState == providers.ProvisioningCreateBlocks:
			return i.failed != nil || !i.fresh, nil
		}
		return true, nil
	})
}

// undiscovered reports whether all that is missing is the address.
func (p *Provider) undiscovered(i *instance) bool {
	return p.profile.IPSource == providers.IPDiscovered && i.State == providers.StateRunning
}

// await looks until done says so. With a pace every look brings the backend on;
// without, it waits for the handle that does.
func (p *Provider) await(ctx context.Context, id string, done func(*instance) (bool, error)) error {
	late := time.NewTimer(maxWait)
	defer late.Stop()
	at, name := p.parts(id)
	for range maxLooks {
		var changed <-chan struct{}
		over, err := call(ctx, p, request{what: "instances.wait", location: at, name: name}, func() (bool, error) {
			changed = p.changed
			i := p.instances[id]
			if i != nil {
				p.tick(i)
				p.visible(i)
				i = p.instances[id]
			}
			return done(i)
		})
		if over || err != nil {
			return err
		}
		if p.pace > 0 || p.catchingUp(id) {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return errTooLong
		}
	}
	return errTooLong
}

func (p *Provider) catchingUp(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.instances[id]
	return ok && i.lag > 0
}

// tick is a look at something that is under way; after as many as the pace says, the
// backend has moved on: it runs, its address is found, it is gone.
func (p *Provider) tick(i *instance) {
	if i.steps++; p.pace == 0 || i.steps < p.pace {
		return
	}
	i.steps = 0
	switch {
	case i.Deleting:
		p.drop(i)
	case i.failed != nil:
	case i.State == providers.StateProvisioning:
		p.run(i)
		i.found = p.profile.IPSource == providers.IPAssignedAtCreate
	case !p.silent:
		i.found = true
	}
}

// naming lets one create of a name go on at a time.
type naming struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// busy reports whether a create of a name is under way.
func (n *naming) busy(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, busy := n.held[name]
	return busy
}

// enter waits for the name, or for the end of ctx.
func (n *naming) enter(ctx context.Context, name string) (leave func(), err error) {
	for {
		n.mu.Lock()
		busy, taken := n.held[name]
		if !taken {
			mine := make(chan struct{})
			n.held[name] = mine
			n.mu.Unlock()
			return func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				delete(n.held, name)
				close(mine)
			}, nil
		}
		n.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
