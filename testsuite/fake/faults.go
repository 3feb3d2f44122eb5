package fake

import (
	"context"
	"errors"
	"sync"

	"github.com/egressfleet/egressfleet/providers"
)

var (
	_ providers.Provider    = (*Faults)(nil)
	_ providers.Inventorier = (*Faults)(nil)
	_ providers.Unwrapper   = (*Faults)(nil)
)

// Faults makes the calls of a provider fail, hang or lie, and counts them. A hook
// before a call keeps it from the backend; after a call the backend has acted and
// only the answer is lost. Operations are the Op constants of the contract.
type Faults struct {
	*Provider
	mu     sync.Mutex
	before map[string]Hook
	after  map[string]Hook
	calls  map[string]int
	next   map[string][]error // what the next calls fail with
	ended  []Call
	sight
}

// WithFaults wraps p with nothing broken yet.
func WithFaults(p *Provider) *Faults {
	return &Faults{
		Provider: p, before: map[string]Hook{}, after: map[string]Hook{}, calls: map[string]int{},
		next:  map[string][]error{},
		sight: sight{unseen: map[string]int{}, made: map[string]bool{}, leftOut: map[string]bool{}},
	}
}

// Unwrap returns the healthy provider.
func (f *Faults) Unwrap() providers.Provider { return f.Provider }

// Before sets the hook that runs instead of the backend when it errs; nil removes it.
func (f *Faults) Before(op string, h Hook) { f.set(f.before, op, h) }

// After sets the hook that runs once the backend has acted; nil removes it.
func (f *Faults) After(op string, h Hook) { f.set(f.after, op, h) }

// Break makes every call fail with the class until Heal.
func (f *Faults) Break(class providers.Class) {
	for _, op := range []string{providers.OpCreate, providers.OpGet, providers.OpDelete, providers.OpList} {
		f.Before(op, Failing(class))
	}
}

// Heal removes every hook, and every fault that was told to come.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.before)
	clear(f.after)
	clear(f.next)
	f.clear()
}

// Calls says how often an operation was asked for, whether it failed or not.
func (f *Faults) Calls(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// Create is the provider's, between the two hooks.
func (f *Faults) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	call := func() (string, error) {
		id, err := f.Provider.Create(ctx, req)
		if err == nil {
			f.hideNew(id)
		}
		return id, err
	}
	return around(ctx, f, target{providers.OpCreate, ID(req.Name), req.Attempt}, call)
}

// Get is the provider's, between the two hooks.
func (f *Faults) Get(ctx context.Context, id string) (*providers.Instance, error) {
	call := func() (*providers.Instance, error) {
		if f.missed(id) {
			return nil, f.wrap(providers.ErrNotFound, providers.OpGet, id, errGone(id))
		}
		return f.Provider.Get(ctx, id)
	}
	return around(ctx, f, target{op: providers.OpGet, id: id}, call)
}

// Delete is the provider's, between the two hooks.
func (f *Faults) Delete(ctx context.Context, id string) error {
	call := func() (any, error) {
		f.forget(id)
		return nil, f.Provider.Delete(ctx, id)
	}
	_, err := around(ctx, f, target{op: providers.OpDelete, id: id}, call)
	return err
}

// ListByTag is the provider's, between the two hooks.
func (f *Faults) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	call := func() ([]providers.Instance, error) {
		all, err := f.Provider.ListByTag(ctx)
		return f.shown(all), err
	}
	return around(ctx, f, target{op: providers.OpList}, call)
}

// Inventory is the provider's, between the hooks of list.
func (f *Faults) Inventory(ctx context.Context) (providers.Inventory, error) {
	call := func() (providers.Inventory, error) {
		inventory, err := f.Provider.Inventory(ctx)
		inventory.Instances = f.shown(inventory.Instances)
		return inventory, err
	}
	return around(ctx, f, target{op: providers.OpList}, call)
}

// target is what a call is about.
type target struct {
	op, id  string
	attempt int // of a create
}

func around[T any](ctx context.Context, f *Faults, at target, call func() (T, error)) (out T, err error) {
	before, after := f.enter(at.op)
	panicked := true
	defer func() { f.record(at, err, panicked) }()
	var none T
	if err = before(ctx); err != nil {
		panicked, err = false, f.sign(at, err)
		return none, err
	}
	out, err = call()
	if lost := after(ctx); lost != nil {
		out, err = none, f.sign(at, lost)
	}
	panicked = false
	return out, err
}

// sign completes a hook's error as the provider would have made it: a hook does not
// know which call it runs in.
func (f *Faults) sign(at target, err error) error {
	e, ok := errors.AsType[*providers.Error](err)
	if !ok || e.Op != "" {
		return err
	}
	return providers.Wrap(e.Class, at.op, f.name, at.id, e.Err)
}

func (f *Faults) enter(op string) (before, after Hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	before, after = orNothing(f.before[op]), orNothing(f.after[op])
	if queue := f.next[op]; len(queue) > 0 {
		f.next[op] = queue[1:]
		before = func(context.Context) error { return queue[0] }
	}
	return before, after
}

func (f *Faults) set(hooks map[string]Hook, op string, h Hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hooks[op] = h
}

func orNothing(h Hook) Hook {
	if h == nil {
		return func(context.Context) error { return nil }
	}
	return h
}
