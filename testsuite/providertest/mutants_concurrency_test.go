package providertest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// meeting holds callers until n of them are there, or gives up soon; it reports
// whether they met. Once they have, it holds nobody any more.
func meeting(n int32) func() bool {
	var here atomic.Int32
	var once sync.Once
	met := make(chan struct{})
	return func() bool {
		if here.Add(1) >= n {
			once.Do(func() { close(met) })
		}
		select {
		case <-met:
			return true
		case <-time.After(mutantBounds / 3):
			return false
		}
	}
}

// repeated are the creates of one name.
type repeated struct {
	creates atomic.Int32
	overlap func() bool
}

func concurrencyMutants() map[string]mutant {
	return map[string]mutant{
		"creates that overlap once the instance is there make another": {
			row: "ThreeCreatesMakeOne", says: "one name has one ID",
			also: []string{"ConcurrentCreatesOfOneNameMakeOne", "OneUIDWinsAName"},
			twist: func(w *twisted) {
				var names sync.Map
				w.asks(func(req *providers.CreateRequest) {
					made, _ := names.LoadOrStore(req.Name, &repeated{overlap: meeting(2)})
					if again := made.(*repeated); again.creates.Add(1) > 3 && again.overlap() {
						req.Name += "-again"
					}
				})
			},
		},
		"everybody wins a name": {
			row: "OneUIDWinsAName", says: "and not a second one",
			also: []string{
				"CreateNeverSaysNotFound", "ForeignUIDIsPermanent", "ForeignInstallationIsPermanent",
				"ErrorsSayWhatFailed", "HalfMarkedIsNeverAdopted",
			},
			twist: func(w *twisted) { w.says(adopting()) },
		},
		"who lost a name is told another holder": {
			row: "OneUIDWinsAName", says: "the error names both",
			also: []string{"ForeignUIDIsPermanent", "HalfMarkedIsNeverAdopted"},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if foreign, ok := errors.AsType[*providers.ForeignError](e); ok {
						foreign.Found.UID = foreign.Wanted.UID
					}
					return e
				})
			},
		},
		"a create that meets a delete is permanent": {
			row: "CreateAndDeleteMayOverlap", says: "may be tried again",
			twist: func(w *twisted) {
				var deleting sync.Map
				w.remove = func(ctx context.Context, id string) error {
					defer deleting.Delete(id)
					deleting.Store(id, true)
					runtimeYield()
					runtimeYield() // a create that yields once meets it
					return w.Faults.Delete(ctx, id)
				}
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					runtimeYield()
					if _, met := deleting.Load(fake.ID(req.Name)); met {
						return "", providers.Wrap(providers.ErrPermanent, providers.OpCreate, "lab", "", errors.New("busy"))
					}
					return w.Faults.Create(ctx, req)
				}
			},
		},
		"a create that meets a delete wedges the name": {
			row: "CreateAndDeleteMayOverlap", says: "the instance runs",
			twist: func(w *twisted) {
				meet := meeting(2) // the first create comes before there are two
				var creates, wedged atomic.Int32
				w.remove = func(ctx context.Context, id string) error {
					if wedged.Load() == 0 && meet() {
						wedged.Store(1)
					}
					return w.Faults.Delete(ctx, id)
				}
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					if creates.Add(1) > 1 && wedged.Load() == 0 {
						meet()
					}
					id, err := w.Faults.Create(ctx, req)
					if wedged.Load() > 0 {
						w.SetState(id, providers.StateProvisioning)
					}
					return id, err
				}
			},
		},
	}
}

func overlapMutants() map[string]mutant {
	return map[string]mutant{
		"a list shows what has no marks yet": {
			row: "ListMayOverlapOthers", says: "before its marks are there",
			twist: listsWhileCreating(func(all []providers.Instance) ([]providers.Instance, error) {
				return append(all, providers.Instance{ID: fake.ID("half"), Installation: fake.DefaultInstallation}), nil
			}),
		},
		"a list has an instance twice": {
			row: "ListMayOverlapOthers", says: "is listed twice",
			twist: listsWhileCreating(func(all []providers.Instance) ([]providers.Instance, error) {
				return append(all, all...), nil
			}),
		},
		"a list fails while others create": {
			row: "ListMayOverlapOthers", says: "busy",
			also: []string{"EverythingAtOnce"},
			twist: listsWhileCreating(func([]providers.Instance) ([]providers.Instance, error) {
				return nil, providers.Wrap(providers.ErrTransient, providers.OpList, "lab", "", errors.New("busy"))
			}),
		},
		"an instance comes back after NotFound": {
			row: "GetMayOverlapDeletes", says: "comes back after NotFound",
			also: []string{"GetShowsADyingInstance"},
			twist: func(w *twisted) {
				var last atomic.Pointer[providers.Instance]
				var misses atomic.Int32
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					found, err := w.Faults.Get(ctx, id)
					if err == nil {
						last.Store(found)
					} else if old := last.Load(); old != nil && misses.Add(1)%2 == 0 {
						return old, nil
					}
					return found, err
				}
			},
		},
		"one of several reads during a delete is permanent": {
			row: "GetMayOverlapDeletes", says: "while a delete is under way",
			opts: []fake.Option{fake.WithSlowDelete(), fake.WithPace(pace)},
			twist: func(w *twisted) {
				var reading atomic.Int32
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					defer reading.Add(-1)
					reading.Add(1)
					runtimeYield()
					found, err := w.Faults.Get(ctx, id)
					if err == nil && found.Deleting && reading.Load() > 1 {
						return nil, providers.Wrap(providers.ErrPermanent, providers.OpGet, "lab", id, errors.New("locked"))
					}
					return found, err
				}
			},
		},
	}
}

// listsWhileCreating twists a list that runs while a create does. The first creates
// wait for one, so that there is.
func listsWhileCreating(twist func([]providers.Instance) ([]providers.Instance, error)) func(*twisted) {
	return func(w *twisted) {
		var creating atomic.Int32
		var once sync.Once
		twisted := make(chan struct{})
		w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
			id, err := w.Faults.Create(ctx, req)
			defer creating.Add(-1)
			creating.Add(1)
			select {
			case <-twisted:
			case <-time.After(mutantBounds / 3):
			}
			return id, err
		}
		w.list = func(ctx context.Context) ([]providers.Instance, error) {
			all, err := w.Faults.ListByTag(ctx)
			if err == nil && creating.Load() > 0 && len(all) > 0 {
				defer once.Do(func() { close(twisted) })
				return twist(all)
			}
			return all, err
		}
	}
}

func adoptionMutants() map[string]mutant {
	// adopts takes an instance over when its holder is not known in full.
	adopts := func(missing func(providers.Holder) bool) func(*twisted) {
		return func(w *twisted) {
			w.says(func(e *providers.Error) error {
				if foreign, ok := errors.AsType[*providers.ForeignError](e); ok && missing(foreign.Found) {
					return nil
				}
				return e
			})
		}
	}
	return map[string]mutant{
		"an instance without UID is adopted": {
			row: "HalfMarkedIsNeverAdopted", says: "without " + providers.MarkUID,
			twist: adopts(func(h providers.Holder) bool { return h.UID == "" && h.Installation != "" }),
		},
		"an instance without installation is adopted": {
			row: "HalfMarkedIsNeverAdopted", says: "without " + providers.MarkInstallation,
			twist: adopts(func(h providers.Holder) bool { return h.Installation == "" && h.UID != "" }),
		},
		"an instance that is not managed is adopted": {
			row: "HalfMarkedIsNeverAdopted", says: "without " + providers.MarkManaged,
			twist: adopts(func(h providers.Holder) bool { return h == providers.Holder{} }),
		},
		"every marked instance is listed": {
			row: "InstallationsLeaveEachOtherAlone", says: "another installation is listed",
			also: []string{"ListHoldsOnlyItsInstallation", "ListLeavesOutWhatIsNotMarked"},
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(ctx)
					for _, i := range w.Instances() {
						if err == nil && i.Installation != "" && i.Installation != fake.DefaultInstallation {
							all = append(all, i)
						}
					}
					return all, err
				}
			},
		},
	}
}
