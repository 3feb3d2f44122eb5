package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/chaos/remote"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

var _ remote.Backend = (*backend)(nil)

const (
	providerName = "fake"
	installation = "chaos"
)

// zones are the locations of the backend, and the zones of a spec.
var zones = []string{"zone-a", "zone-b", "zone-c"}

// backend is a cloud as harsh as the contract allows: an instance is known by its
// zone, its name and the attempt, so that a create which should not have been made
// makes a second instance of its UID. It writes down what comes and what goes.
type backend struct {
	mu    sync.Mutex
	zones map[string]*fake.Provider
	held  map[string]holding
	log   []happening
}

// holding is an instance at the backend.
type holding struct {
	ID, UID  string
	SpecMark string
	At       time.Time
	Failed   bool // its create was accepted and failed late: it never runs
}

// happening is one instance that came or went.
type happening struct {
	holding
	Gone bool
}

func newBackend() *backend {
	b := &backend{zones: map[string]*fake.Provider{}, held: map[string]holding{}}
	for _, zone := range zones {
		b.zones[zone] = fake.New(providerName,
			fake.WithInstallation(installation), fake.WithProvisioning(), fake.WithSlowDelete())
	}
	return b
}

// Create makes one instance of an attempt in the zone that was asked for.
func (b *backend) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	zone, ok := b.zones[req.Placement.Zone]
	if !ok {
		return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, providerName, "",
			fmt.Errorf("placement.zone: %q is none of %v", req.Placement.Zone, zones))
	}
	defer b.change()()
	req.Name = fmt.Sprintf("%s-%d", req.Name, req.Attempt)
	id, err := zone.Create(ctx, req)
	return outer(req.Placement.Zone, id), err
}

// Get reads one instance.
func (b *backend) Get(ctx context.Context, id string) (*providers.Instance, error) {
	zone, inner, err := b.locate(providers.OpGet, id)
	if err != nil {
		return nil, err
	}
	inst, err := b.zones[zone].Get(ctx, inner)
	if inst != nil {
		inst.ID = id
	}
	return inst, err
}

// Delete begins to remove an instance.
func (b *backend) Delete(ctx context.Context, id string) error {
	zone, inner, err := b.locate(providers.OpDelete, id)
	if err != nil {
		return err
	}
	defer b.change()()
	return b.zones[zone].Delete(ctx, inner)
}

// ListByTag lists every zone.
func (b *backend) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	all, err := b.Inventory(ctx)
	return all.Instances, err
}

// Inventory lists every zone, and with it what a create that failed late has left: it
// is there, and nothing else would find it after an answer that was lost.
func (b *backend) Inventory(ctx context.Context) (all providers.Inventory, err error) {
	for _, zone := range zones {
		part, err := b.zones[zone].ListByTag(ctx)
		if err != nil {
			return providers.Inventory{}, err
		}
		for _, inst := range part {
			inst.ID = outer(zone, inst.ID)
			all.Instances = append(all.Instances, inst)
		}
	}
	held, _ := b.record()
	for _, h := range held {
		if h.Failed {
			all.Instances = append(all.Instances, providers.Instance{
				ID: h.ID, UID: h.UID, Installation: installation, State: providers.StateStopped,
				Reason: "its create failed", CreatedAt: h.At,
			})
		}
	}
	return all, nil
}

// failNext lets the next create of a zone be accepted and fail late.
func (b *backend) failNext(zone string, class providers.Class) {
	if z, ok := b.zones[zone]; ok {
		z.FailCreate(class, "injected: it was accepted, and failed later")
	}
}

// alter does something to an instance that nobody asked for, or moves it on.
func (b *backend) alter(id string, do func(zone *fake.Provider, inner string)) {
	zone, inner, err := b.locate(providers.OpGet, id)
	if err != nil {
		return
	}
	defer b.change()()
	do(b.zones[zone], inner)
}

// stays reports whether an instance is there and not being deleted.
func (b *backend) stays(id string) bool {
	zone, inner, err := b.locate(providers.OpGet, id)
	return err == nil && slices.ContainsFunc(b.zones[zone].Instances(), func(i providers.Instance) bool {
		return i.ID == inner && !i.Deleting
	})
}

// finishDeletes removes what is being deleted in a zone.
func (b *backend) finishDeletes(zone string) {
	defer b.change()()
	b.zones[zone].FinishDeletes()
}

// change is called before something changes; what it returns writes down what came
// of it.
func (b *backend) change() (done func()) {
	b.mu.Lock()
	return func() {
		defer b.mu.Unlock()
		now := b.holdings()
		b.log = append(b.log, difference(b.held, now)...)
		b.held = now
	}
}

// holdings is all that the zones hold. The caller holds the lock.
func (b *backend) holdings() map[string]holding {
	now := map[string]holding{}
	for _, zone := range zones {
		for _, inst := range b.zones[zone].Instances() {
			id := outer(zone, inst.ID)
			h, known := b.held[id]
			if !known {
				h = holding{
					ID: id, UID: inst.UID, SpecMark: inst.SpecMark, At: inst.CreatedAt,
					Failed: b.zones[zone].Failed(inst.ID),
				}
			}
			now[id] = h
		}
	}
	return now
}

// difference says what went and what came, in that order.
func difference(before, now map[string]holding) (out []happening) {
	for id, h := range before {
		if _, still := now[id]; !still {
			out = append(out, happening{h, true})
		}
	}
	for id, h := range now {
		if _, was := before[id]; !was {
			out = append(out, happening{h, false})
		}
	}
	return out
}

// record returns what the backend holds and all that has happened.
func (b *backend) record() (held []holding, log []happening) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.held {
		held = append(held, h)
	}
	slices.SortFunc(held, func(a, c holding) int { return strings.Compare(a.ID, c.ID) })
	return held, slices.Clone(b.log)
}

// outer is the ID of the contract: <zone>/<name>.
func outer(zone, inner string) string {
	_, name, _ := strings.Cut(inner, "/")
	return zone + "/" + name
}

func (b *backend) locate(op, id string) (zone, inner string, err error) {
	zone, name, _ := strings.Cut(id, "/")
	if _, ok := b.zones[zone]; !ok {
		return "", "", providers.Wrap(providers.ErrPermanent, op, providerName, id, fmt.Errorf("malformed id %q", id))
	}
	return zone, fake.ID(name), nil
}
