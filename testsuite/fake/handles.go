package fake

import (
	"maps"
	"slices"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// The handles below do to the backend what its owner, its operator or bad luck
// would do. Naming an instance that is not there does nothing.

// Lose makes an instance vanish, as if somebody deleted it by hand.
func (p *Provider) Lose(id string) {
	p.to(id, p.drop)
}

// SetState changes what the backend says; a word that is none of the four is one that
// the provider does not know. Running gives an address to an instance that has none;
// every other state takes it away.
func (p *Provider) SetState(id string, state providers.State) {
	p.to(id, func(i *instance) {
		switch {
		case state != providers.StateRunning:
			i.State, i.IP, i.fresh = state, "", false
		case i.IP == "":
			p.run(i)
		default:
			i.State = state
		}
		i.found = true
	})
}

// SetReason sets why an instance is in its state.
func (p *Provider) SetReason(id, reason string) {
	p.to(id, func(i *instance) { i.Reason = reason })
}

// SetCreatedAt makes an instance older or younger; the zero time is one that the
// backend cannot tell.
func (p *Provider) SetCreatedAt(id string, at time.Time) {
	p.to(id, func(i *instance) { i.CreatedAt = at })
}

// SetDeleting makes an instance look as if a delete were under way, or not.
func (p *Provider) SetDeleting(id string, deleting bool) {
	p.to(id, func(i *instance) { i.Deleting = deleting })
}

// SetIP moves a running instance to another address.
func (p *Provider) SetIP(id, ip string) {
	p.to(id, func(i *instance) { i.IP = ip })
}

// Hide makes Get and ListByTag miss an instance that is there, as a backend with
// eventual consistency does. Create still finds it. Show ends it.
func (p *Provider) Hide(id string) { p.to(id, func(i *instance) { i.hidden = true }) }

// Show ends Hide.
func (p *Provider) Show(id string) { p.to(id, func(i *instance) { i.hidden = false }) }

// Finish lets an instance that is provisioning run, and its address be found.
func (p *Provider) Finish(id string) {
	p.to(id, func(i *instance) {
		if i.State == providers.StateProvisioning {
			p.run(i)
		}
		i.found = true
	})
}

// FinishDeletes removes every instance that is being deleted.
func (p *Provider) FinishDeletes() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.instances {
		if i.Deleting {
			p.drop(i)
		}
	}
}

// Lock lets a task of the backend hold an instance: it can be read, but not deleted.
func (p *Provider) Lock(id string) (unlock func()) {
	p.to(id, func(i *instance) { i.locked = true })
	return func() { p.to(id, func(i *instance) { i.locked = false }) }
}

// FailCreate lets the next create that makes an instance be accepted and fail
// late: Get then returns an error of that class whose Op is create, until the
// instance is deleted or created with a higher Attempt.
func (p *Provider) FailCreate(class providers.Class, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failNext = &failNext{class: class, text: text}
}

// Plant puts an instance there as it is. One without an installation, or with
// another, is not the provider's: it is never listed.
func (p *Provider) Plant(i providers.Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, name := p.parts(i.ID)
	p.instances[i.ID] = &instance{Instance: i, at: at, name: name, found: true}
}

// Requests returns every create that was asked for, in order, with the repetitions.
func (p *Provider) Requests() []providers.CreateRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Instances returns all that the backend holds, whoever owns it, in the order of
// the IDs: nothing left is an empty list.
func (p *Provider) Instances() []providers.Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]providers.Instance, 0, len(p.instances))
	for _, id := range slices.Sorted(maps.Keys(p.instances)) {
		out = append(out, p.instances[id].Instance)
	}
	return out
}

// Failed reports whether the create of an instance was accepted and failed late.
func (p *Provider) Failed(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.instances[id]
	return ok && i.failed != nil
}

// Resources names everything that the backend holds under the name of an instance:
// the instance, marked or not, and its volume.
func (p *Provider) Resources(name string) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(p.instances)) {
		if p.instances[id].name == name {
			all = append(all, "instance "+id)
		}
	}
	for _, where := range slices.Sorted(maps.Keys(p.volumes)) {
		if p.volumes[where].name == name {
			all = append(all, "volume "+where)
		}
	}
	return all
}

func (p *Provider) to(id string, do func(*instance)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, ok := p.instances[id]; ok {
		do(i)
		p.change()
	}
}

// PlantVolume puts a volume there that has no instance, as a create of long ago left it.
func (p *Provider) PlantVolume(left providers.Leftover) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, name := p.parts(left.ID)
	p.volumes[at+"/"+name] = &volume{Leftover: left, at: at, name: name}
}
