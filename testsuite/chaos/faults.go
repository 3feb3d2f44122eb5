package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/chaos/remote"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

var _ remote.Backend = (*faults)(nil)

// trouble is one way in which a call goes wrong. A hook before the call keeps it from
// the backend; after it the backend has acted, and only the answer is lost.
type trouble struct {
	name          string
	of1000        int // how often, of a thousand calls
	before, after fake.Hook
}

// callsEach is how many calls of an operation there are for each of its troubles,
// until that trouble is made to happen.
const callsEach = 10

const (
	lateFailure   = "late failure"
	falseNotFound = "false NotFound"
)

// troubles lists what may happen to a call of each operation.
func troubles() map[string][]trouble {
	return map[string][]trouble{
		providers.OpCreate: {
			failing(providers.ErrTransient, 80), failing(providers.ErrQuotaExceeded, 40), failing(providers.ErrPermanent, 30),
			{name: "hang", of1000: 40, before: fake.Hanging},
			{name: "slow", of1000: 60, before: late},
			{name: "lost answer", of1000: 80, after: fake.Failing(providers.ErrTransient)},
			{name: "hang after it worked", of1000: 40, after: fake.Hanging},
			{name: lateFailure, of1000: 40},
		},
		providers.OpGet: {
			failing(providers.ErrTransient, 40), failing(providers.ErrQuotaExceeded, 15), failing(providers.ErrPermanent, 15),
			{name: "hang", of1000: 10, before: fake.Hanging},
			{name: falseNotFound, of1000: 40, before: fake.Failing(providers.ErrNotFound)},
		},
		providers.OpDelete: {
			failing(providers.ErrTransient, 80), failing(providers.ErrQuotaExceeded, 30), failing(providers.ErrPermanent, 30),
			{name: "hang", of1000: 40, before: fake.Hanging},
			{name: "lost answer", of1000: 80, after: fake.Failing(providers.ErrTransient)},
			{name: "hang after it worked", of1000: 40, after: fake.Hanging},
		},
		providers.OpList: {
			failing(providers.ErrTransient, 100), failing(providers.ErrQuotaExceeded, 50), failing(providers.ErrPermanent, 50),
			{name: "hang", of1000: 50, before: fake.Hanging},
		},
	}
}

func failing(class providers.Class, of1000 int) trouble {
	return trouble{name: string(class), of1000: of1000, before: fake.Failing(class)}
}

// lateness is how much later than its caller expects a slow call reaches the backend.
const lateness = 1500 * time.Millisecond

// late lets a call reach the backend although its caller may be gone by then.
func late(context.Context) error {
	<-time.After(lateness)
	return nil
}

// faults makes the calls of a backend go wrong until it is healed. It is seeded: the
// same calls in the same order meet the same trouble.
type faults struct {
	*backend
	mu     sync.Mutex
	random *rand.Rand
	healed bool
	lied   map[string]bool // the instances about which a lie was told: once is the most
	failed map[string]bool // the UIDs whose create has failed late
	counts map[string]int  // by operation and trouble
	calls  map[string]int  // by operation
}

func withFaults(b *backend, random *rand.Rand) *faults {
	return &faults{
		backend: b, random: random,
		lied: map[string]bool{}, failed: map[string]bool{}, counts: map[string]int{}, calls: map[string]int{},
	}
}

// heal ends all trouble.
func (f *faults) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.healed = true
}

// missing names the troubles that did not happen: a run without them proves less.
func (f *faults) missing() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for op, all := range troubles() {
		for _, t := range all {
			// A list is asked for too rarely to count on each of its troubles.
			if op != providers.OpList && f.counts[op+" "+t.name] == 0 {
				names = append(names, op+" "+t.name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// String says what happened how often.
func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := make([]string, 0, len(f.counts))
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, f.counts[name]))
	}
	return strings.Join(parts, ", ")
}

// draw picks what happens to a call; the zero trouble is none.
func (f *faults) draw(op, id string) trouble {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.random.IntN(1000)
	f.calls[op]++
	if f.healed {
		return trouble{}
	}
	for i, t := range troubles()[op] {
		n -= t.of1000
		if n >= 0 && !f.overdue(op, i, t) || !f.may(t, id) {
			continue
		}
		f.counts[op+" "+t.name]++
		return t
	}
	return trouble{}
}

// overdue reports whether the i-th trouble of an operation has not happened although
// there were calls enough: on a slow machine, too, a run has all of them.
func (f *faults) overdue(op string, i int, t trouble) bool {
	return f.counts[op+" "+t.name] == 0 && f.calls[op] >= callsEach*(i+1)
}

// may reports whether a trouble may happen to an instance, or a UID.
func (f *faults) may(t trouble, id string) bool {
	switch t.name {
	case falseNotFound:
		return f.mayLie(id)
	case lateFailure:
		return first(f.failed, id)
	default:
		return true
	}
}

// mayLie allows one lie about an instance, and none once its delete was accepted: a
// NotFound that was asked for is believed at once.
func (f *faults) mayLie(id string) bool { return f.stays(id) && first(f.lied, id) }

// anyClass picks a class that a create can fail with.
func (f *faults) anyClass() providers.Class {
	f.mu.Lock()
	defer f.mu.Unlock()
	classes := []providers.Class{providers.ErrTransient, providers.ErrQuotaExceeded, providers.ErrPermanent}
	return classes[f.random.IntN(len(classes))]
}

func first(seen map[string]bool, id string) bool {
	was := seen[id]
	seen[id] = true
	return !was
}

// Create is the backend's, with trouble.
func (f *faults) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	t := f.draw(providers.OpCreate, req.UID)
	if t.name == lateFailure {
		f.failNext(req.Placement.Zone, f.anyClass())
	}
	return meet(ctx, t, providers.OpCreate, func(ctx context.Context) (string, error) {
		return f.backend.Create(ctx, req)
	})
}

// Get is the backend's, with trouble.
func (f *faults) Get(ctx context.Context, id string) (*providers.Instance, error) {
	t := f.draw(providers.OpGet, id)
	return meet(ctx, t, providers.OpGet, func(ctx context.Context) (*providers.Instance, error) {
		return f.backend.Get(ctx, id)
	})
}

// Delete is the backend's, with trouble.
func (f *faults) Delete(ctx context.Context, id string) error {
	t := f.draw(providers.OpDelete, id)
	_, err := meet(ctx, t, providers.OpDelete, func(ctx context.Context) (any, error) {
		return nil, f.backend.Delete(ctx, id)
	})
	return err
}

// Inventory is the backend's, with trouble.
func (f *faults) Inventory(ctx context.Context) (providers.Inventory, error) {
	return meet(ctx, f.draw(providers.OpList, ""), providers.OpList, f.backend.Inventory)
}

// meet lets a call meet its trouble. A slow call reaches the backend without its
// caller.
func meet[T any](
	ctx context.Context, t trouble, op string, do func(context.Context) (T, error),
) (out T, err error) {
	var none T
	if t.before != nil {
		if err := t.before(ctx); err != nil {
			return none, signed(op, err)
		}
		ctx = context.WithoutCancel(ctx)
	}
	if out, err = do(ctx); err == nil && t.after != nil {
		return none, signed(op, t.after(ctx))
	}
	return out, err
}

// signed completes a hook's error as a provider would have made it.
func signed(op string, err error) error {
	cause := err
	if e, ok := errors.AsType[*providers.Error](err); ok {
		cause = e.Err
	}
	return providers.Wrap(providers.ClassOf(err), op, providerName, "", cause)
}
