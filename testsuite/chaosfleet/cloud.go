package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

var (
	_ providers.Provider    = (*cloud)(nil)
	_ providers.Inventorier = (*cloud)(nil)
)

const (
	providerName = "fake"
	installation = "life"
)

// The words for what happens at the backend.
const (
	came    = "came"
	deleted = "deleted" // somebody of ours asked for it
	lost    = "lost"    // nobody did
)

// happening is one instance that came or went. No two have the same address.
type happening struct {
	At      time.Time
	What    string
	UID, IP string
}

// cloud is a backend whose instances serve, each at an address of its own, and which
// writes down what came and what went.
type cloud struct {
	backend *fake.Faults
	egress  *egress
	empty   atomic.Bool  // its listings are empty, and say so without an error
	failed  atomic.Int64 // listings that were refused

	mu  sync.Mutex
	log []happening
}

func newCloud(e *egress) *cloud {
	return &cloud{backend: fake.WithFaults(fake.New(providerName, fake.WithInstallation(installation))), egress: e}
}

// Create lets an instance serve as soon as it is there.
func (c *cloud) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.backend.Instances()
	id, err := c.backend.Create(ctx, req)
	if err != nil {
		return "", err
	}
	if _, known := find(before, id); known {
		return id, nil
	}
	made, _ := find(c.backend.Instances(), id)
	c.write(came, made)
	if err := c.egress.open(ctx, made.IP); err != nil {
		return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, providerName, id, err)
	}
	return id, nil
}

// Get reads one instance.
func (c *cloud) Get(ctx context.Context, id string) (*providers.Instance, error) {
	return c.backend.Get(ctx, id)
}

// Delete removes an instance at once.
func (c *cloud) Delete(ctx context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := find(c.backend.Instances(), id)
	if err := c.backend.Delete(ctx, id); err != nil || !known {
		return err
	}
	c.write(deleted, was)
	c.egress.shut(was.IP)
	return nil
}

// ListByTag lists the instances.
func (c *cloud) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	all, err := c.Inventory(ctx)
	return all.Instances, err
}

// Inventory lists the instances.
func (c *cloud) Inventory(ctx context.Context) (providers.Inventory, error) {
	all, err := c.backend.Inventory(ctx)
	if err != nil {
		c.failed.Add(1)
	}
	if c.empty.Load() {
		all.Instances = nil
	}
	return all, err
}

// lose lets the instance of a UID vanish.
func (c *cloud) lose(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.backend.Instances() {
		if i.UID == uid {
			c.backend.Lose(i.ID)
			c.write(lost, i)
			c.egress.shut(i.IP)
		}
	}
}

// of returns the instances of a UID.
func (c *cloud) of(uid string) []providers.Instance {
	return slices.DeleteFunc(c.backend.Instances(), func(i providers.Instance) bool { return i.UID != uid })
}

// write adds to the log. The caller holds the lock.
func (c *cloud) write(what string, i providers.Instance) {
	c.log = append(c.log, happening{time.Now(), what, i.UID, i.IP})
}

// record returns what the backend holds and all that has happened.
func (c *cloud) record() (held []providers.Instance, log []happening) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.backend.Instances(), slices.Clone(c.log)
}

func find(all []providers.Instance, id string) (providers.Instance, bool) {
	i := slices.IndexFunc(all, func(i providers.Instance) bool { return i.ID == id })
	if i < 0 {
		return providers.Instance{}, false
	}
	return all[i], true
}
