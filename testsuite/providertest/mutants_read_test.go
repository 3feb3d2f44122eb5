package providertest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func getMutants() map[string]mutant {
	return map[string]mutant{
		"an instance is Running before it has an address": {
			row: "RunningHasAnAddress", says: "Running with the IP",
			twist: func(w *twisted) { w.getShows(func(i *providers.Instance) { i.IP = "" }) },
		},
		"an address is none": {
			row: "RunningHasAnAddress", says: `Running with the IP "unknown"`,
			twist: func(w *twisted) { w.listShows(func(i *providers.Instance) { i.IP = "unknown" }) },
		},
		"an instance provisions for ever": {
			row: "BecomesRunning", says: "the instance runs", opts: []fake.Option{fake.WithProvisioning()},
			twist: func(*twisted) {},
		},
		"an instance that was not started yet is Stopped": {
			row: "FreshIsNeverStopped", says: "just been created", opts: []fake.Option{fake.WithProvisioning()},
			twist: func(w *twisted) { w.getShows(func(i *providers.Instance) { i.State = providers.StateStopped }) },
		},
		"a fresh instance looks deleted": {
			row: "FreshIsNeverStopped", says: "nobody has deleted it",
			twist: func(w *twisted) { w.getShows(func(i *providers.Instance) { i.Deleting = true }) },
		},
		"a dying instance is NotFound": {
			row: "GetShowsADyingInstance", says: "still listed", opts: []fake.Option{fake.WithSlowDelete()},
			twist: dyingIsNotFound,
		},
		"a dying instance forgets its UID": {
			row: "GetShowsADyingInstance", says: "Not equal", opts: []fake.Option{fake.WithSlowDelete()},
			twist: func(w *twisted) {
				w.getShows(func(i *providers.Instance) {
					if i.Deleting {
						i.UID = ""
					}
				})
			},
		},
		"a missing instance is Transient": {
			row: "MissingIsNotFound", says: "while a delete is under way", opts: nil,
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if errors.Is(e, providers.ErrNotFound) {
						e.Class = providers.ErrPermanent
					}
					return e
				})
			},
		},
		"an unreachable backend is NotFound": {
			row: "UnreachableIsNeverNotFound", says: "without a backend",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if e.Op == providers.OpGet {
						e.Class = providers.ErrNotFound
					}
					return e
				})
			},
		},
		"an unreachable backend has an empty list": {
			row: "UnreachableIsNeverNotFound", says: "list without a backend",
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, _ := w.Faults.ListByTag(ctx)
					return all, nil
				}
			},
		},
		"a malformed ID is NotFound": {
			row: "MalformedIDIsPermanent", says: "get of the malformed ID",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if e.Op == providers.OpGet && e.Class == providers.ErrPermanent {
						e.Class = providers.ErrNotFound
					}
					return e
				})
			},
		},
		"deleting a malformed ID succeeds": {
			row: "MalformedIDIsPermanent", says: "delete of the malformed ID",
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error { _ = w.Faults.Delete(ctx, id); return nil }
			},
		},
		"blanks around an ID are forgiven": {
			row: "MalformedIDIsPermanent", says: `\n"`,
			twist: func(w *twisted) {
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					return w.Faults.Get(ctx, strings.TrimSpace(id))
				}
			},
		},
	}
}

func listMutants() map[string]mutant {
	return map[string]mutant{
		"the list is empty": {
			row: "ListHoldsWhatWasCreated", says: "the list shows the instance",
			twist: func(w *twisted) {
				w.list = func(context.Context) ([]providers.Instance, error) { return nil, nil }
			},
		},
		"the list shows every installation": {
			row: "ListHoldsOnlyItsInstallation", says: "installation of mem/",
			twist: func(w *twisted) {
				w.list = func(context.Context) ([]providers.Instance, error) { return w.Instances(), nil }
			},
		},
		"the list shows what is not marked": {
			row: "ListLeavesOutWhatIsNotMarked", says: "mem/bare",
			twist: func(w *twisted) {
				w.list = func(context.Context) ([]providers.Instance, error) {
					return slices.DeleteFunc(w.Instances(), func(i providers.Instance) bool { return i.Installation == "prod" }), nil
				}
			},
		},
		"the list has names in the place of IDs": {
			row: "ListedIDsAreTaken", says: "malformed id",
			twist: func(w *twisted) {
				w.listShows(func(i *providers.Instance) { i.ID = strings.TrimPrefix(i.ID, "mem/") })
			},
		},
		"the list remembers what is gone": {
			row: "DeletedLeavesTheList", says: "the list forgets the instance",
			twist: func(w *twisted) {
				var mu sync.Mutex
				ever := map[string]providers.Instance{}
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(ctx)
					mu.Lock()
					defer mu.Unlock()
					for _, i := range all {
						ever[i.ID] = i
					}
					return slices.Collect(maps.Values(ever)), err
				}
			},
		},
		"the inventory is empty": {
			row: "InventoryAgreesWithTheList", says: "the inventory holds the instance",
			twist: func(w *twisted) {
				w.inventory = func(context.Context) (providers.Inventory, error) { return providers.Inventory{}, nil }
			},
		},
	}
}
