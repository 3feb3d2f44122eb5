package fake

import (
	"context"

	"github.com/egressfleet/egressfleet/providers"
)

// remove asks for the end of an instance, takes the volume where nobody else does,
// and waits where the profile says so.
func (p *Provider) remove(ctx context.Context, id string) error {
	at, name := p.parts(id)
	_, err := call(ctx, p, request{what: "instances.delete", location: at, name: name}, func() (any, error) {
		return nil, p.end(id)
	})
	if err != nil {
		return err
	}
	if err := p.removeVolumeOf(ctx, id); err != nil {
		return err
	}
	if p.profile.DeleteReturn == providers.DeleteReturnsEarly {
		return nil
	}
	return p.await(ctx, id, func(i *instance) (bool, error) { return i == nil, nil })
}

// end begins the end of an instance, or is all of it. The caller holds the lock.
func (p *Provider) end(id string) error {
	i, ok := p.instances[id]
	slow := p.pace > 0 || p.profile.DeleteReturn == providers.DeleteReturnsEarly
	switch {
	case !ok:
	case i.locked:
		return errLocked(i.name)
	case slow && i.failed == nil:
		if !i.Deleting {
			i.Deleting, i.steps = true, 0
		}
	default:
		p.drop(i)
	}
	return nil
}

// removeVolumeOf removes the volume that was made for this ID. Where the backend does
// it with the instance, it is only there when there never was one.
func (p *Provider) removeVolumeOf(ctx context.Context, id string) error {
	at, name := p.parts(id)
	p.mu.Lock()
	i := p.named(at, name)
	v, ok := p.volumes[at+"/"+name]
	keep := !ok || v.ID != id || i != nil && (i.cascade || i.ID != id)
	p.mu.Unlock()
	if keep {
		return nil
	}
	return p.removeVolume(ctx, at, name, providers.Holder{UID: v.UID, Installation: v.Installation})
}
