package fake

import (
	"context"
	"log/slog"

	"github.com/egressfleet/egressfleet/providers"
)

// read returns the entry of an instance, and errGone when it is not there. How that
// is known, the profile says: where it is a listing, all of it must have answered.
func (p *Provider) read(ctx context.Context, id string) (*instance, error) {
	at, name := p.parts(id)
	if p.profile.NotFound != providers.NotFoundListAndMiss {
		return call(ctx, p, request{what: "instances.get", location: at, name: name}, func() (*instance, error) {
			return p.seen(id, name)
		})
	}
	var found *instance
	for _, part := range locations() {
		all, err := p.listPart(ctx, part, id)
		if err != nil {
			return nil, err
		}
		for _, i := range all {
			if i.ID == id {
				found = i
			}
		}
	}
	if found == nil {
		return nil, errGone(name)
	}
	return found, nil
}

// seen is one look at an instance. The caller holds the lock.
func (p *Provider) seen(id, name string) (*instance, error) {
	if i, ok := p.instances[id]; ok {
		p.tick(i)
	}
	i, ok := p.instances[id]
	if !ok || !p.visible(i) {
		return nil, errGone(name)
	}
	shown := *i
	return &shown, nil
}

// listPart lists one location; a look at one of its instances may bring that one on.
func (p *Provider) listPart(ctx context.Context, at, id string) ([]*instance, error) {
	return call(ctx, p, request{what: "instances.list", location: at}, func() ([]*instance, error) {
		if i, ok := p.instances[id]; ok && i.at == at {
			p.tick(i)
		}
		return p.listed(at), nil
	})
}

// view is an instance in the contract's words.
func (p *Provider) view(i *instance) providers.Instance {
	shown := i.Instance
	switch shown.State {
	case providers.StateRunning:
		if shown.IP == "" || !i.found {
			shown.State, shown.IP = providers.StateProvisioning, ""
		}
	case providers.StateProvisioning:
		// A backend without such a state shows a machine that is off, as one that stopped.
		if p.profile.ProvisioningState != providers.ProvisioningNative && !i.fresh {
			shown.State = providers.StateStopped
		}
	case providers.StateStopped, providers.StateTerminated:
	default:
		shown.State, shown.Reason = providers.StateStopped, "unknown state "+string(i.State)
	}
	return shown
}

// Inventory lists every location. One that does not answer fails the whole, or is
// named and left out, as the profile says; but what nobody answered is no list.
func (p *Provider) Inventory(ctx context.Context) (providers.Inventory, error) {
	return operate(ctx, p, target{op: providers.OpList}, p.inventory)
}

func (p *Provider) inventory(ctx context.Context) (providers.Inventory, error) {
	out := providers.Inventory{Instances: []providers.Instance{}}
	for _, at := range locations() {
		err := p.add(ctx, at, &out)
		switch {
		case err == nil:
		case p.profile.ListPartial == providers.ListFailWhole || ctx.Err() != nil || !coded(err, codeUnreachable):
			return providers.Inventory{}, err
		default:
			out.Omitted = append(out.Omitted, at)
			if len(out.Omitted) == len(locations()) {
				return providers.Inventory{}, err
			}
			p.logOmitted(ctx, at)
		}
	}
	return out, nil
}

// add puts what is the installation's in one location into an inventory.
func (p *Provider) add(ctx context.Context, at string, out *providers.Inventory) error {
	all, err := p.listPart(ctx, at, "")
	if err != nil {
		return err
	}
	volumes, err := call(ctx, p, request{what: "volumes.list", location: at}, func() ([]*volume, error) {
		return p.alone(at), nil
	})
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.failed == nil && i.Installation == p.installation {
			out.Instances = append(out.Instances, p.view(i))
		}
	}
	for _, v := range volumes {
		if v.Installation == p.installation {
			out.Leftovers = append(out.Leftovers, v.Leftover)
		}
	}
	return nil
}

func (p *Provider) logOmitted(ctx context.Context, at string) {
	if p.profile.Logging != providers.LoggingNone {
		providers.Logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "fake list leaves a location out",
			slog.String("provider", p.name), slog.String("location", at))
	}
}
