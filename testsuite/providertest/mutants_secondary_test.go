package providertest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// explicit are the options of a reference that makes a volume for each instance.
func explicit() []fake.Option {
	return choosing(func(p *providers.Profile) { p.SecondaryResources = providers.SecondaryExplicit })
}

// leftovers changes what an inventory says is left.
func (w *twisted) leftovers(change func([]providers.Leftover) []providers.Leftover) {
	w.inventory = func(ctx context.Context) (providers.Inventory, error) {
		all, err := w.Faults.Inventory(ctx)
		all.Leftovers = change(all.Leftovers)
		return all, err
	}
}

func secondaryMutants() map[string]mutant {
	return map[string]mutant{
		"nobody sees a volume without its instance": {
			row: "HalfMadeIsCollected", says: "is listed and deleted", opts: explicit(),
			also: []string{"OrphansAreListed", "OrphansAreTaken", "OrphansBlockNoCreate"},
			twist: func(w *twisted) {
				w.leftovers(func([]providers.Leftover) []providers.Leftover { return nil })
			},
		},
		"a volume that is there blocks a create": {
			row: "OrphansBlockNoCreate", says: "volume exists", opts: explicit(),
			also: []string{"HalfMadeIsTakenUp"},
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					if w.hasVolumeOnly(ctx, req.Name) {
						return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, "lab", "", errors.New("volume exists"))
					}
					return w.Faults.Create(ctx, req)
				}
			},
		},
		"a volume that was there stays when its name is deleted": {
			row: "OrphansBlockNoCreate", says: "the volume that was there before", opts: explicit(),
			also: []string{"HalfMadeIsTakenUp"},
			twist: func(w *twisted) {
				var old sync.Map
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					if w.hasVolumeOnly(ctx, req.Name) {
						old.Store(fake.ID(req.Name), true)
					}
					return w.Faults.Create(ctx, req)
				}
				w.remove = func(ctx context.Context, id string) error {
					if _, ok := old.Load(id); ok {
						w.Lose(id)
						return nil
					}
					return w.Faults.Delete(ctx, id)
				}
			},
		},
		"the instance goes and its volume stays": {
			row: "DeleteLeavesNothing", says: "but this is left", opts: explicit(),
			also: []string{"OrphansBlockNoCreate", "HalfMadeIsTakenUp"},
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					if _, err := w.Faults.Get(ctx, id); err != nil {
						return w.Faults.Delete(ctx, id)
					}
					w.Lose(id)
					return nil
				}
			},
		},
	}
}

// hasVolumeOnly reports whether all that has a name is a volume.
func (w *twisted) hasVolumeOnly(ctx context.Context, name string) bool {
	_, err := w.Faults.Get(ctx, fake.ID(name))
	return errors.Is(err, providers.ErrNotFound) && len(w.Resources(name)) > 0
}

func leftoverMutants() map[string]mutant {
	each := func(change func(*providers.Leftover)) func(*twisted) {
		return func(w *twisted) {
			w.leftovers(func(all []providers.Leftover) []providers.Leftover {
				for i := range all {
					change(&all[i])
				}
				return all
			})
		}
	}
	return map[string]mutant{
		"an old volume without its instance is not listed": {
			row: "OrphansAreListed", says: "the inventory lists the orphan", opts: explicit(),
			also: []string{"OrphansAreTaken", "OrphansBlockNoCreate"},
			twist: func(w *twisted) {
				w.leftovers(func(all []providers.Leftover) []providers.Leftover {
					return slices.DeleteFunc(all, func(l providers.Leftover) bool {
						return time.Since(l.CreatedAt) > time.Minute
					})
				})
			},
		},
		"a leftover has no kind": {
			row: "OrphansAreListed", says: "kind of", opts: explicit(),
			also:  []string{"HalfMadeIsCollected"},
			twist: each(func(l *providers.Leftover) { l.Kind = "" }),
		},
		"a leftover has no installation": {
			row: "OrphansAreListed", says: "installation of", opts: explicit(),
			also:  []string{"HalfMadeIsCollected"},
			twist: each(func(l *providers.Leftover) { l.Installation = "" }),
		},
		"a leftover has no ID": {
			row: "OrphansAreListed", says: "Should NOT be empty", opts: explicit(),
			also:  []string{"HalfMadeIsCollected", "OrphansAreTaken"},
			twist: each(func(l *providers.Leftover) { l.ID = "" }),
		},
		"the volume of an instance is listed as a leftover": {
			row: "OrphansAreListed", says: "are no leftovers", opts: explicit(),
			twist: func(w *twisted) {
				w.inventory = func(ctx context.Context) (providers.Inventory, error) {
					all, err := w.Faults.Inventory(ctx)
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
			row: "OrphansAreTaken", says: "a leftover that was deleted is gone", opts: explicit(),
			also: []string{"HalfMadeIsCollected"},
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					if _, err := w.Faults.Get(ctx, id); errors.Is(err, providers.ErrNotFound) {
						return nil
					}
					return w.Faults.Delete(ctx, id)
				}
			},
		},
		"a leftover is listed for ever": {
			row: "OrphansAreTaken", says: "a leftover that is gone is listed", opts: explicit(),
			twist: func(w *twisted) {
				var once sync.Once
				var kept []providers.Leftover
				w.leftovers(func(all []providers.Leftover) []providers.Leftover {
					if len(all) > 0 {
						once.Do(func() { kept = all })
					}
					return kept
				})
			},
		},
	}
}
