package gcp

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/egressfleet/egressfleet/providers"
)

// Create submits an instance and returns once a read sees it, or knows why none will
// come. It looks first, in every zone that the placement allows: what is there is taken
// up, what is under way is waited for.
func (p *Provider) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	at, err := p.create(ctx, req)
	id := ""
	if at != (place{}) {
		id = at.id()
	}
	if err != nil {
		err = withhold(err, req.CloudInit)
		return "", p.fail(ctx, about{op: providers.OpCreate}, cmp.Or(id, req.Name), err)
	}
	p.report(ctx, providers.OpCreate, id, slog.Int("attempt", req.Attempt), slog.Int("cloudInitBytes", len(req.CloudInit)))
	return id, nil
}

// creation is one call of Create.
type creation struct {
	*Provider
	req     providers.CreateRequest
	zones   []string        // all that are allowed
	refused map[string]bool // those that had no capacity at this call
	why     error           // of the last of them
}

func (p *Provider) create(ctx context.Context, req providers.CreateRequest) (place, error) {
	if err := checkRequest(req); err != nil {
		return place{}, err
	}
	if _, err := imagePath(p.set.Project, cmp.Or(req.Placement.Image, p.set.Image)); err != nil {
		return place{}, permanent("placement.image: %w", err)
	}
	where, err := locate(req.Placement, p.set.Zones)
	if err != nil {
		return place{}, err
	}
	if ctx.Err() != nil {
		return place{}, context.Cause(ctx)
	}
	if where.region != "" {
		if where.zones, err = p.zonesOf(ctx, where.region); err != nil {
			return place{}, err
		}
	}
	c := creation{Provider: p, req: req, zones: where.zones, refused: map[string]bool{}}
	return c.run(ctx)
}

// roundsPerZone bounds a create whose place changes under it: a look, an insert and a
// leftover disk are three.
const roundsPerZone = 4

// run looks and decides, until it is decided.
func (c *creation) run(ctx context.Context) (place, error) {
	for range roundsPerZone * len(c.zones) {
		seen, err := c.look(ctx)
		if err != nil {
			return place{}, err
		}
		next := choose(seen, c.refused, c.find)
		at := next.at.at
		c.detail(ctx, "create looked", slog.String("name", c.req.Name), slog.String("finding", next.do.String()),
			slog.String("zone", at.zone), slog.Int("zones", len(seen)))
		switch next.do {
		case free:
			err = c.insert(ctx, at)
		case pending:
			err = c.await(ctx, at, nil)
		case ours, foreign, dying, failed, spent:
			return c.conclude(ctx, next)
		}
		if err != nil {
			return at, err
		}
	}
	return place{}, transient("the name %s is taken and free by turns", c.req.Name)
}

// conclude ends a create: it is known what is there.
func (c *creation) conclude(ctx context.Context, s step) (place, error) {
	at := s.at.at
	switch s.do {
	case ours:
		return c.settle(ctx, append(s.more, s.at))
	case foreign:
		return at, &fault{providers.ErrPermanent, &providers.ForeignError{
			Found: s.at.holder(), Wanted: c.wanted(at.zone).holder,
		}}
	case dying:
		return at, transient("the instance that has the name is being deleted")
	case failed:
		if at == (place{}) { // every zone refused at once, so Get would find no reason
			return at, c.why
		}
	case free, pending, spent:
	}
	return at, nil
}

// settle removes what two workers have made at once in two zones, whichever of them does
// it the same one, and lets clients in.
func (c *creation) settle(ctx context.Context, all []sight) (place, error) {
	kept := place{order(c.req.Name, zonesOf(all), never)[0], c.req.Name}
	for _, s := range all {
		if s.at == kept {
			continue
		}
		c.logger(ctx).LogAttrs(ctx, slog.LevelWarn, "gcp removes the second instance of a proxy",
			slog.String("providerID", s.at.id()), slog.String("kept", kept.id()))
		if err := c.api.remove(ctx, s.at, s.removalID()); err != nil {
			return s.at, err
		}
	}
	return kept, c.open(ctx, c.req.Port)
}

func never(string) bool { return false }

func zonesOf(all []sight) (zones []string) {
	for _, s := range all {
		zones = append(zones, s.at.zone)
	}
	return zones
}

func (c *creation) wanted(zone string) wanted {
	return wanted{
		holder:    providers.Holder{UID: c.req.UID, Installation: c.req.Installation},
		requestID: requestID(c.req.UID, zone, c.req.Attempt),
	}
}

func (c *creation) find(s sight) finding { return s.find(c.wanted(s.at.zone), c.now()) }

// look sees the name in every zone. A stockout that another worker met is in the
// operations, and counts for the order as one of our own does.
func (c *creation) look(ctx context.Context) ([]sight, error) {
	seen := map[string]sight{}
	for _, zone := range c.zones {
		s, err := c.see(ctx, place{zone, c.req.Name})
		if err != nil {
			return nil, err
		}
		if at := s.stockout(); !at.IsZero() {
			c.full.note(zone, at)
		}
		seen[zone] = s
	}
	var inOrder []sight
	for _, zone := range order(c.req.Name, c.zones, func(zone string) bool { return c.full.out(zone, c.now()) }) {
		inOrder = append(inOrder, seen[zone])
	}
	return inOrder, nil
}

// see looks at one place: for the instance, and for what is being done to it.
func (p *Provider) see(ctx context.Context, at place) (sight, error) {
	s := sight{at: at}
	instance, err := p.api.instance(ctx, at)
	switch {
	case err == nil:
		s.instance = instance
	case classify(err, about{providers.OpGet, at.path("instances")}) != providers.ErrNotFound:
		return s, err
	}
	ops, err := p.api.operations(ctx, at)
	if err != nil {
		return s, err
	}
	s.history = tell(at, ops)
	return s, nil
}
