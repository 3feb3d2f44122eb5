package providertest_test

import (
	"context"
	"errors"
	"slices"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// twisted is the fake with one method replaced: a mutant.
type twisted struct {
	*fake.Faults
	create    func(context.Context, providers.CreateRequest) (string, error)
	get       func(context.Context, string) (*providers.Instance, error)
	remove    func(context.Context, string) error
	list      func(context.Context) ([]providers.Instance, error)
	inventory func(context.Context) (providers.Inventory, error)
	check     func(context.Context) []providers.TargetStatus
	prepare   func(context.Context, providers.CreateRequest) error
	profile   func() providers.Profile
}

// straight is a mutant that nothing is wrong with, yet.
func straight(f *fake.Faults) *twisted {
	return &twisted{
		Faults: f, create: f.Create, get: f.Get, remove: f.Delete, list: f.ListByTag,
		inventory: f.Inventory, check: f.Check, profile: f.Profile, prepare: f.Prepare,
	}
}

func (w *twisted) Unwrap() providers.Provider { return w.Faults }

func (w *twisted) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	return w.create(ctx, req)
}

func (w *twisted) Get(ctx context.Context, id string) (*providers.Instance, error) {
	return w.get(ctx, id)
}

func (w *twisted) Delete(ctx context.Context, id string) error { return w.remove(ctx, id) }

func (w *twisted) ListByTag(ctx context.Context) ([]providers.Instance, error) { return w.list(ctx) }

func (w *twisted) Inventory(ctx context.Context) (providers.Inventory, error) {
	return w.inventory(ctx)
}

func (w *twisted) Check(ctx context.Context) []providers.TargetStatus { return w.check(ctx) }

func (w *twisted) Prepare(ctx context.Context, req providers.CreateRequest) error {
	return w.prepare(ctx, req)
}

func (w *twisted) Profile() providers.Profile { return w.profile() }

// shows changes every instance that Get and the list show.
func (w *twisted) shows(change func(*providers.Instance)) {
	w.getShows(change)
	w.listShows(change)
}

func (w *twisted) getShows(change func(*providers.Instance)) {
	w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
		found, err := w.Faults.Get(ctx, id)
		if err == nil {
			change(found)
		}
		return found, err
	}
}

func (w *twisted) listShows(change func(*providers.Instance)) {
	w.list = func(ctx context.Context) ([]providers.Instance, error) {
		all, err := w.Faults.ListByTag(ctx)
		for i := range all {
			change(&all[i])
		}
		return all, err
	}
}

// asks changes every request before the backend sees it.
func (w *twisted) asks(change func(*providers.CreateRequest)) {
	w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
		change(&req)
		return w.Faults.Create(ctx, req)
	}
}

// says changes the errors of Get, Delete and Create.
func (w *twisted) says(change func(*providers.Error) error) {
	twist := func(err error) error {
		if e, ok := errors.AsType[*providers.Error](err); ok {
			return change(e)
		}
		return err
	}
	w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
		id, err := w.Faults.Create(ctx, req)
		return id, twist(err)
	}
	w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
		found, err := w.Faults.Get(ctx, id)
		return found, twist(err)
	}
	w.remove = func(ctx context.Context, id string) error { return twist(w.Faults.Delete(ctx, id)) }
	w.list = func(ctx context.Context) ([]providers.Instance, error) {
		all, err := w.Faults.ListByTag(ctx)
		return all, twist(err)
	}
}

// listsOf lists what the backend holds and keep keeps, once the list has answered.
func (w *twisted) listsOf(keep func(providers.Instance) bool) {
	w.list = func(ctx context.Context) ([]providers.Instance, error) {
		if _, err := w.Faults.ListByTag(ctx); err != nil {
			return nil, err
		}
		return slices.DeleteFunc(w.Instances(), func(i providers.Instance) bool { return !keep(i) }), nil
	}
}

// renames shows every ID in another form, and takes it so.
func (w *twisted) renames(show, take func(string) string) {
	w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
		id, err := w.Faults.Create(ctx, req)
		return show(id), err
	}
	change := func(i *providers.Instance) { i.ID = show(i.ID) }
	w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
		found, err := w.Faults.Get(ctx, take(id))
		if err == nil {
			change(found)
		}
		return found, err
	}
	w.remove = func(ctx context.Context, id string) error { return w.Faults.Delete(ctx, take(id)) }
	w.listShows(change)
	w.inventory = func(ctx context.Context) (providers.Inventory, error) {
		inventory, err := w.Faults.Inventory(ctx)
		for n := range inventory.Instances {
			change(&inventory.Instances[n])
		}
		return inventory, err
	}
}
