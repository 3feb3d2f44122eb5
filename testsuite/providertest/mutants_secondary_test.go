package providertest_test

import (
	"context"
	"errors"
	"sync"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func secondaryMutants() map[string]mutant {
	leftovers := func(change func(*providers.Leftover)) func(*twisted) {
		return func(w *twisted) {
			w.inventory = func(ctx context.Context) (providers.Inventory, error) {
				all, err := w.stock.Inventory(ctx)
				for i := range all.Leftovers {
					change(&all.Leftovers[i])
				}
				return all, err
			}
		}
	}
	// blocked refuses a name that has a volume, but for the instance that has it.
	blocked := func(w *twisted) {
		w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
			if _, err := w.Faults.Get(ctx, fake.ID(req.Name)); err != nil && w.stock.has(req.Name) {
				return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, "lab", "", errors.New("volume exists"))
			}
			return w.stock.Create(ctx, req)
		}
	}
	// forgets deletes instances, and no volume.
	forgets := func(w *twisted) { w.remove = w.Faults.Delete }
	return map[string]mutant{
		"what a failed create made blocks the next": {
			row: "HalfMadeIsResumed", says: "volume exists", twist: blocked,
		},
		"a create resumed and deleted leaves its volume": {
			row: "HalfMadeIsResumed", says: "the create that failed first has left this", twist: forgets,
		},
		"what a failed create made is not listed": {
			row: "HalfMadeIsCollected", says: "is listed and deleted",
			twist: func(w *twisted) { w.inventory = w.Faults.Inventory },
		},
		"a volume without instance is not listed": {
			row: "OrphansAreListed", says: "the inventory lists the orphan",
			twist: func(w *twisted) { w.inventory = w.Faults.Inventory },
		},
		"a leftover has no kind": {
			row: "OrphansAreListed", says: "kind of",
			twist: leftovers(func(l *providers.Leftover) { l.Kind = "" }),
		},
		"a leftover has no installation": {
			row: "OrphansAreListed", says: "installation of",
			twist: leftovers(func(l *providers.Leftover) { l.Installation = "" }),
		},
		"a leftover has no ID": {
			row: "OrphansAreListed", says: "Should NOT be empty",
			twist: leftovers(func(l *providers.Leftover) { l.ID = "" }),
		},
		"the volume of an instance is listed as a leftover": {
			row: "OrphansAreListed", says: "are no leftovers",
			twist: func(w *twisted) {
				w.inventory = func(ctx context.Context) (providers.Inventory, error) {
					all, err := w.stock.Inventory(ctx)
					for _, i := range all.Instances {
						all.Leftovers = append(all.Leftovers, providers.Leftover{
							ID: i.ID, Kind: "volume", UID: i.UID, Installation: i.Installation,
						})
					}
					return all, err
				}
			},
		},
		"a leftover is not deleted": {
			row: "OrphansAreTaken", says: "a leftover that was deleted is gone", twist: forgets,
		},
		"a leftover is listed for ever": {
			row: "OrphansAreTaken", says: "a leftover that is gone is listed",
			twist: func(w *twisted) {
				var once sync.Once
				var kept []providers.Leftover
				w.inventory = func(ctx context.Context) (providers.Inventory, error) {
					all, err := w.stock.Inventory(ctx)
					if len(all.Leftovers) > 0 {
						once.Do(func() { kept = all.Leftovers })
					}
					all.Leftovers = kept
					return all, err
				}
			},
		},
		"an old volume blocks a create": {
			row: "OrphansBlockNoCreate", says: "volume exists", twist: blocked,
		},
		"an old volume is left when its name is deleted": {
			row: "OrphansBlockNoCreate", says: "the volume that was there before", twist: forgets,
		},
	}
}
