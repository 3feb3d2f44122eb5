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

// Hook runs around a call; its error replaces the call's own result.
type Hook func(context.Context) error

// Faults makes the calls of a provider fail, hang or lie, and counts them. A hook
// before a call keeps it from the backend; after a call the backend has acted and
// only the answer is lost. Operations are the Op constants of the contract.
type Faults struct {
	*Provider
	mu     sync.Mutex
	before map[string]Hook
	after  map[string]Hook
	calls  map[string]int
}

// WithFaults wraps p with nothing broken yet.
func WithFaults(p *Provider) *Faults {
	return &Faults{Provider: p, before: map[string]Hook{}, after: map[string]Hook{}, calls: map[string]int{}}
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

// Heal removes every hook.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.before)
	clear(f.after)
}

// Calls says how often an operation was asked for, whether it failed or not.
func (f *Faults) Calls(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// Failing returns a hook that always fails with the class.
func Failing(class providers.Class) Hook { return FailingWith(class, "injected") }

// FailingWith returns a hook that always fails with the class and the text.
func FailingWith(class providers.Class, text string) Hook {
	return func(context.Context) error { return &providers.Error{Class: class, Err: errors.New(text)} }
}

// Once returns a hook that fails with the class the first time only.
func Once(class providers.Class) Hook {
	var once sync.Once
	return func(ctx context.Context) (err error) {
		once.Do(func() { err = Failing(class)(ctx) })
		return err
	}
}

// Hanging is a hook that returns only when the call's context ends.
func Hanging(ctx context.Context) error {
	<-ctx.Done()
	return &providers.Error{Class: providers.ErrTransient, Err: ctx.Err()}
}

// Create is the provider's, between the two hooks.
func (f *Faults) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	call := func() (string, error) { return f.Provider.Create(ctx, req) }
	return around(ctx, f, target{providers.OpCreate, ID(req.Name)}, call)
}

// Get is the provider's, between the two hooks.
func (f *Faults) Get(ctx context.Context, id string) (*providers.Instance, error) {
	call := func() (*providers.Instance, error) { return f.Provider.Get(ctx, id) }
	return around(ctx, f, target{providers.OpGet, id}, call)
}

// Delete is the provider's, between the two hooks.
func (f *Faults) Delete(ctx context.Context, id string) error {
	call := func() (any, error) { return nil, f.Provider.Delete(ctx, id) }
	_, err := around(ctx, f, target{providers.OpDelete, id}, call)
	return err
}

// ListByTag is the provider's, between the two hooks.
func (f *Faults) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	call := func() ([]providers.Instance, error) { return f.Provider.ListByTag(ctx) }
	return around(ctx, f, target{op: providers.OpList}, call)
}

// Inventory is the provider's, between the hooks of list.
func (f *Faults) Inventory(ctx context.Context) (providers.Inventory, error) {
	call := func() (providers.Inventory, error) { return f.Provider.Inventory(ctx) }
	return around(ctx, f, target{op: providers.OpList}, call)
}

// target is what a call is about.
type target struct{ op, id string }

func around[T any](ctx context.Context, f *Faults, at target, call func() (T, error)) (T, error) {
	before, after := f.enter(at.op)
	var none T
	if err := before(ctx); err != nil {
		return none, f.sign(at, err)
	}
	out, err := call()
	if lost := after(ctx); lost != nil {
		return none, f.sign(at, lost)
	}
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
	return orNothing(f.before[op]), orNothing(f.after[op])
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
