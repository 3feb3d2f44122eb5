package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/egressfleet/egressfleet/providers"
)

// Create is idempotent by name. A name that another UID or installation holds, and
// one that is no DNS label, are Permanent; one that is still being deleted is
// Transient. A create that failed late is made anew by a higher Attempt only.
func (p *Provider) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	at := target{op: providers.OpCreate, id: placed(req) + "/" + req.Name, attempt: req.Attempt}
	return operate(ctx, p, at, func(ctx context.Context) (string, error) {
		if size := len(req.CloudInit); p.maxCloudInit > 0 && size > p.maxCloudInit {
			return "", p.wrap(providers.ErrPermanent, at.op, at.id,
				fmt.Errorf("cloudInit: %d bytes are more than the limit of %d", size, p.maxCloudInit))
		}
		p.remember(req)
		req.Installation = cmp.Or(req.Installation, p.installation)
		leave, err := p.naming.enter(ctx, req.Name)
		if err != nil {
			return "", err
		}
		defer leave()
		return p.create(ctx, req)
	})
}

// create takes up what is there, and makes what is missing. Every step may be the
// last one of a worker that dies, and the first one of the next.
func (p *Provider) create(ctx context.Context, req providers.CreateRequest) (string, error) {
	have, err := p.find(ctx, req)
	if err != nil {
		return "", err
	}
	if have != nil && have.failed != nil && req.Attempt > have.attempt {
		if err := p.remove(ctx, have.ID); err != nil {
			return "", err
		}
		have = nil
	}
	id := ""
	switch {
	case have == nil:
		if err = p.prepared(req); err == nil {
			id, err = p.make(ctx, req)
		}
	case p.unmarked(have):
		id = have.ID
	default:
		id, err = have.ID, holder(have.Instance, req)
	}
	if err != nil {
		return "", err
	}
	if have != nil && have.Deleting {
		return "", errDying(req.Name)
	}
	return id, p.complete(ctx, id, req)
}

// complete does what comes after the instance is there: marks where the create call
// took none, and the wait that the profile promises.
func (p *Provider) complete(ctx context.Context, id string, req providers.CreateRequest) error {
	if p.profile.GCMark == providers.MarkWindow {
		if err := p.mark(ctx, id, req); err != nil {
			return err
		}
	}
	return p.settle(ctx, id)
}

// find looks the name up where the request lands: what a lag hides from reads, too.
func (p *Provider) find(ctx context.Context, req providers.CreateRequest) (*instance, error) {
	r := request{what: "instances.find", location: placed(req), name: req.Name}
	return call(ctx, p, r, func() (*instance, error) {
		found := p.named(r.location, req.Name)
		if found == nil {
			return nil, nil //nolint:nilnil // nothing has that name, and that is no error
		}
		seen := *found
		return &seen, nil
	})
}

// unmarked reports whether an instance was left between a create and its mark. Its
// name is the digest of a UID, so it is the Proxy's own.
func (p *Provider) unmarked(i *instance) bool {
	return p.profile.GCMark == providers.MarkWindow && i.UID == "" && i.Installation == ""
}

// make adds the volume and the instance. Where keys are allocated, somebody else may
// take the free one first: then it looks for another.
func (p *Provider) make(ctx context.Context, req providers.CreateRequest) (string, error) {
	for {
		key, err := p.allocate(ctx, req)
		if err != nil {
			return "", err
		}
		id, err := p.insertBoth(ctx, req, key)
		if p.profile.PrimaryKey != providers.KeyAllocated || !coded(err, codeExists) {
			return id, err
		}
	}
}

// allocate returns a key that nothing has right now, 0 where the name is the key.
func (p *Provider) allocate(ctx context.Context, req providers.CreateRequest) (int, error) {
	if p.profile.PrimaryKey != providers.KeyAllocated {
		return 0, nil
	}
	r := request{what: "keys.next", location: placed(req), name: req.Name}
	return call(ctx, p, r, func() (int, error) { return p.freeKey(r.location), nil })
}

// insertBoth makes the volume first, and takes it away again when no instance follows.
func (p *Provider) insertBoth(ctx context.Context, req providers.CreateRequest, key int) (string, error) {
	err := p.insertVolume(ctx, req, key)
	if err == nil {
		err = p.insertInstance(ctx, req, key)
	}
	if err != nil && p.profile.SecondaryResources != providers.SecondaryNone {
		p.discard(context.WithoutCancel(ctx), req)
	}
	if err != nil {
		return "", err
	}
	return p.id(placed(req), req.Name, key), nil
}

// discard removes the volume of a create that failed. An instance may be there all the
// same, when only the answer was lost: then it stays. What cannot be removed now is
// listed as a leftover, or taken up by the next create.
func (p *Provider) discard(ctx context.Context, req providers.CreateRequest) {
	if have, err := p.find(ctx, req); err == nil && have == nil {
		_ = p.removeVolume(ctx, placed(req), req.Name, providers.Holder{UID: req.UID, Installation: req.Installation})
	}
}

func (p *Provider) insertInstance(ctx context.Context, req providers.CreateRequest, key int) error {
	r := request{what: "instances.insert", location: placed(req), name: req.Name, bytes: len(req.CloudInit)}
	_, err := call(ctx, p, r, func() (any, error) { return nil, p.insert(p.wanted(req, key)) })
	return err
}

// wanted returns the new entry. The caller holds the lock.
func (p *Provider) wanted(req providers.CreateRequest, key int) *instance {
	i := &instance{
		at: placed(req), name: req.Name, key: key, attempt: req.Attempt, failed: p.failNext, fresh: true,
		cascade:  p.profile.SecondaryResources == providers.SecondaryCascade,
		Instance: providers.Instance{ID: p.id(placed(req), req.Name, key), State: providers.StateProvisioning},
	}
	p.failNext = nil
	if p.profile.AsyncOps == providers.AsyncTaskHandle && p.full { // a task says so, later
		i.failed = &failNext{p.classOf(errFull()), errFull().Error()}
	}
	if p.profile.CreatedAt == providers.CreatedAtBackend {
		i.CreatedAt = p.now()
	}
	if p.profile.GCMark != providers.MarkWindow {
		p.write(i, req)
	}
	if p.profile.Readiness == providers.ReadinessImmediate && i.failed == nil {
		p.run(i)
		i.found = p.profile.IPSource == providers.IPAssignedAtCreate
	}
	return i
}

// write puts the marks on an instance, with the time where the backend keeps none.
func (p *Provider) write(i *instance, req providers.CreateRequest) {
	i.UID, i.Installation, i.Owner, i.SpecMark = req.UID, req.Installation, req.Owner, req.SpecMark
	if p.profile.CreatedAt == providers.CreatedAtWritten {
		i.CreatedAt = p.now()
	}
}

// mark writes the marks of an instance that has none; two creates may try.
func (p *Provider) mark(ctx context.Context, id string, req providers.CreateRequest) error {
	r := request{what: "instances.mark", location: placed(req), name: req.Name}
	_, err := call(ctx, p, r, func() (any, error) {
		i, ok := p.instances[id]
		switch {
		case !ok:
			return nil, errGone(req.Name)
		case p.unmarked(i):
			p.write(i, req)
		}
		return nil, holder(i.Instance, req)
	})
	if coded(err, codeGone) { // it went between the two calls: no answer of a create
		return errDying(req.Name)
	}
	return err
}

// holder refuses an instance of another UID or installation, naming both.
func holder(have providers.Instance, req providers.CreateRequest) error {
	if have.UID == req.UID && have.Installation == req.Installation {
		return nil
	}
	return &providers.Error{Class: providers.ErrPermanent, Err: &providers.ForeignError{
		Found:  providers.Holder{UID: have.UID, Installation: have.Installation},
		Wanted: providers.Holder{UID: req.UID, Installation: req.Installation},
	}}
}

// remember keeps a request as it was, whatever its caller does to its maps and bytes.
func (p *Provider) remember(req providers.CreateRequest) {
	req.Labels = maps.Clone(req.Labels)
	req.CloudInit = slices.Clone(req.CloudInit)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, req)
}
