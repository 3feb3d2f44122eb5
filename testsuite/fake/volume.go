package fake

import (
	"context"

	"github.com/egressfleet/egressfleet/providers"
)

// insertVolume makes the volume of an instance that is about to be made, or takes up
// the one that an earlier create left.
func (p *Provider) insertVolume(ctx context.Context, req providers.CreateRequest, key int) error {
	if p.profile.SecondaryResources == providers.SecondaryNone {
		return nil
	}
	r := request{what: "volumes.insert", location: placed(req), name: req.Name}
	_, err := call(ctx, p, r, func() (any, error) {
		where := r.location + "/" + req.Name
		if have, ok := p.volumes[where]; ok {
			left := providers.Instance{UID: have.UID, Installation: have.Installation}
			if err := holder(left, req); err != nil {
				return nil, err
			}
		}
		p.volumes[where] = &volume{at: r.location, name: req.Name, key: key, Leftover: providers.Leftover{
			ID: p.id(r.location, req.Name, key), Kind: "volume",
			UID: req.UID, Installation: req.Installation, Owner: req.Owner, CreatedAt: p.now(),
		}}
		return nil, nil
	})
	return err
}

// removeVolume tolerates that there is none, and leaves what another holds.
func (p *Provider) removeVolume(ctx context.Context, at, name string, of providers.Holder) error {
	_, err := call(ctx, p, request{what: "volumes.delete", location: at, name: name}, func() (any, error) {
		if v, ok := p.volumes[at+"/"+name]; ok && v.UID == of.UID && v.Installation == of.Installation {
			delete(p.volumes, at+"/"+name)
		}
		return nil, nil
	})
	return err
}
