package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/worker/hands"
)

// sight is what the sweeps see of Visibility, which may lag or be empty without an error.
type sight struct {
	*fleet.Client
	hidden    atomic.Pointer[map[string]bool] // UIDs that are not listed as living, though they are
	noLiving  atomic.Bool                     // none is listed as living
	noRunning atomic.Bool                     // none is listed as running
}

// ours asks for the owners of instances.
type ours struct{ *sight }

func (o ours) LivingUIDs(ctx context.Context) (map[string]bool, error) {
	if o.noLiving.Load() {
		return map[string]bool{}, nil
	}
	living, err := o.Client.LivingUIDs(ctx)
	if hidden := o.hidden.Load(); hidden != nil {
		maps.DeleteFunc(living, func(uid string, _ bool) bool { return (*hidden)[uid] })
	}
	return living, err
}

func (o ours) Owner(ctx context.Context, owner, uid string) (activities.OwnerState, error) {
	return hands.Owners{Client: o.Client}.Owner(ctx, owner, uid)
}

// watched asks for what should be at the backend.
type watched struct{ *sight }

func (w watched) Running(ctx context.Context, provider string) ([]activities.Expected, error) {
	if w.noRunning.Load() {
		return nil, nil
	}
	return hands.Watched{Client: w.Client}.Running(ctx, provider)
}

func (w watched) Hint(ctx context.Context, e activities.Expected, h activities.Hint) error {
	return hands.Watched{Client: w.Client}.Hint(ctx, e, h)
}

// probed asks for what is to be probed.
type probed struct{ *sight }

func (p probed) Pages(ctx context.Context, size int) ([][]byte, error) {
	if p.noRunning.Load() {
		return nil, nil
	}
	return p.Client.Pages(ctx, size)
}

func (p probed) Report(ctx context.Context, of v1.Proxy, r activities.HealthReport) error {
	return hands.Probed{Client: p.Client}.Report(ctx, of, r)
}

func (p probed) Replace(ctx context.Context, f activities.Failing, reason, request string) (asked bool, err error) {
	return hands.Probed{Client: p.Client}.Replace(ctx, f, reason, request)
}

// diary is what the sweeps have said, in order.
type diary struct {
	mu      sync.Mutex
	sweeps  []sweep
	looks   []look
	rounds  []round
	overdue int // of the round that is under way
}

// looked reports whether there was a comparison of a kind.
func (d *diary) looked(is func(look) bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.looks, is)
}

// sweep is one collection of orphans, look one comparison with a listing.
type (
	sweep struct {
		At    time.Time
		Lag   bool // Visibility did not show some
		Blind bool // Visibility showed none
		activities.SweepReport
	}
	look struct {
		At time.Time
		activities.DriftReport
	}
)

// round is one health round.
type round struct {
	At      time.Time // its end
	Overdue int       // proxies that have been unhealthy for as long as they may
	activities.ProviderHealthNote
}

// collector, looker and prober are the activities of production, with a diary.
type (
	collector struct {
		*activities.Orphans
		*diary
		sight *sight
	}
	looker struct {
		*activities.Drift
		*diary
	}
	prober struct {
		*activities.Health
		*diary
		// still is held by a batch: what must not change in the middle of one waits for it.
		still *sync.RWMutex
	}
)

func (c *collector) SweepOrphans(ctx context.Context, in activities.SweepInput) (activities.SweepReport, error) {
	lag, blind := c.sight.hidden.Load() != nil, c.sight.noLiving.Load()
	r, err := c.Orphans.SweepOrphans(ctx, in)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sweeps = append(c.sweeps, sweep{time.Now(), lag, blind, r})
	}
	return r, err
}

func (l *looker) SweepDrift(ctx context.Context, in activities.DriftInput) (activities.DriftReport, error) {
	r, err := l.Drift.SweepDrift(ctx, in)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.looks = append(l.looks, look{time.Now(), r})
	}
	return r, err
}

func (p *prober) ProbeBatch(ctx context.Context, begins []byte) (activities.BatchReport, error) {
	p.still.RLock()
	defer p.still.RUnlock()
	r, err := p.Health.ProbeBatch(ctx, begins)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.overdue += len(r.Failing)
	return r, err
}

func (p *prober) NoteHealth(ctx context.Context, notes []activities.ProviderHealthNote) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range notes {
		p.rounds = append(p.rounds, round{time.Now(), p.overdue, n})
	}
	p.overdue = 0
	return p.Health.NoteHealth(ctx, notes)
}

// wish is a proxy as its client writes it.
func wish(name string, spec v1.ProxySpec) v1.Proxy {
	return v1.Proxy{Metadata: v1.Metadata{Namespace: namespace, Name: name}, Spec: spec}
}
