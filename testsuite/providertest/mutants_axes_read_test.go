package providertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func axesStateMutants() map[string]mutant {
	return map[string]mutant{
		"an agent that does not answer is an error": {
			row: "NoAddressYetIsProvisioning", says: "the agent is not connected",
			opts: choosing(func(p *providers.Profile) { p.IPSource = providers.IPDiscovered }),
			twist: func(w *twisted) {
				var mu sync.Mutex
				looks := map[string]int{}
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					found, err := w.Faults.Get(ctx, id)
					mu.Lock()
					defer mu.Unlock()
					if looks[id]++; err == nil && found.State == providers.StateProvisioning && looks[id] > pace {
						err = errors.New("the agent is not connected")
						return nil, providers.Wrap(providers.ErrTransient, providers.OpGet, "lab", id, err)
					}
					return found, err
				}
			},
		},
		"what stopped looks as if it had not started yet": {
			row: "StoppedAfterwardsIsStopped", says: "stopped after it ran", also: []string{"UnknownStateIsStopped"},
			opts: choosing(func(p *providers.Profile) {
				p.ProvisioningState, p.Readiness = providers.ProvisioningMarker, providers.ReadinessProvisioningWindow
			}),
			twist: func(w *twisted) {
				w.shows(func(i *providers.Instance) {
					if i.State == providers.StateStopped {
						i.State = providers.StateProvisioning
					}
				})
			},
		},
		"a state that nobody knows is handed on": {
			row: "UnknownStateIsStopped", says: "nobody knows",
			twist: func(w *twisted) {
				w.shows(func(i *providers.Instance) {
					if word, ok := strings.CutPrefix(i.Reason, "unknown state "); ok {
						i.State = providers.State(word)
					}
				})
			},
		},
	}
}

// missesElsewhere reports whether an error is about the part that the suite cuts off.
func missesElsewhere(err error) bool {
	return err != nil && strings.Contains(err.Error(), fake.Elsewhere+" does not answer")
}

func axesPartMutants() map[string]mutant {
	omits := choosing(func(p *providers.Profile) { p.ListPartial = providers.ListOmitUnreachable })
	return map[string]mutant{
		"a part that is missed is left out in silence": {
			row: "PartIsMissedWhole", says: "An error is expected",
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(ctx)
					if missesElsewhere(err) {
						there := func(i providers.Instance) bool { return strings.HasPrefix(i.ID, fake.Elsewhere) }
						return slices.DeleteFunc(w.Instances(), there), nil
					}
					return all, err
				}
			},
		},
		"an inventory does not say what it left out": {
			row: "PartIsLeftOutByName", says: "names what it left out", opts: omits,
			twist: func(w *twisted) {
				w.inventory = func(ctx context.Context) (providers.Inventory, error) {
					inventory, err := w.Faults.Inventory(ctx)
					inventory.Omitted = nil
					return inventory, err
				}
			},
		},
		"a part that is missed fails a list that leaves out": {
			row: "PartIsLeftOutByName", says: "does not answer", opts: omits,
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					inventory, err := w.Faults.Inventory(ctx)
					if err == nil && len(inventory.Omitted) > 0 {
						return nil, providers.Wrap(providers.ErrTransient, providers.OpList, "lab", "",
							errors.New(inventory.Omitted[0]+" does not answer"))
					}
					return inventory.Instances, err
				}
			},
		},
		"what a partial list does not show is gone": {
			row: "CutOffPartIsNeverNotFound", says: "class of",
			opts: choosing(func(p *providers.Profile) { p.NotFound = providers.NotFoundListAndMiss }),
			twist: func(w *twisted) {
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					found, err := w.Faults.Get(ctx, id)
					if missesElsewhere(err) {
						return nil, notFound(id)
					}
					return found, err
				}
			},
		},
		"every 404 is the instance's": {
			row: "OnlyTheInstanceCountsAsMissing", says: "while something else is missing",
			opts: choosing(func(p *providers.Profile) { p.NotFound = providers.NotFoundStatus404 }),
			twist: func(w *twisted) {
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					found, err := w.Faults.Get(ctx, id)
					if said, ok := errors.AsType[*fake.BackendError](err); ok && said.Status == 404 {
						return nil, notFound(id)
					}
					return found, err
				}
			},
		},
		"deleting what is not found succeeds, whatever is missing": {
			row: "OnlyTheInstanceCountsAsMissing", says: "while something else is missing",
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					err := w.Faults.Delete(ctx, id)
					if err != nil && strings.Contains(err.Error(), "not found") {
						return nil
					}
					return err
				}
			},
		},
		"no capacity is Transient": {
			row: "NoCapacityHasItsClass", says: "class of",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if e.Class == providers.ErrQuotaExceeded {
						e.Class = providers.ErrTransient
					}
					return e
				})
			},
		},
		"every create without capacity leaves a volume": {
			row: "NoCapacityHasItsClass", says: "a create without capacity leaves this",
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					if errors.Is(err, providers.ErrQuotaExceeded) {
						w.PlantVolume(providers.Leftover{ID: fake.ID(req.Name), Kind: "volume", UID: req.UID})
					}
					return id, err
				}
			},
		},
		"nothing tells that the backend is full": {
			row: "NoCapacityHasItsClass", says: "no error tells that the backend is full",
			opts: choosing(func(p *providers.Profile) { p.Quota = providers.QuotaAbsent }),
			twist: func(w *twisted) {
				w.check = func(ctx context.Context) []providers.TargetStatus {
					all := w.Faults.Check(ctx)
					for n := range all {
						all[n].Details = nil
					}
					return all
				}
			},
		},
	}
}

func axesAsyncMutants() map[string]mutant {
	tasks := choosing(func(p *providers.Profile) { p.AsyncOps = providers.AsyncTaskHandle })
	locks := choosing(func(p *providers.Profile) { p.AsyncOps = providers.AsyncBackendLock })
	return map[string]mutant{
		"a create that failed late is NotFound": {
			row: "LateFailureIsReported", says: "class of", opts: tasks,
			twist: func(w *twisted) {
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					found, err := w.Faults.Get(ctx, id)
					if providers.IsCreateFailed(err) {
						return nil, notFound(id)
					}
					return found, err
				}
			},
		},
		"a create that failed late looks like a failed read": {
			row: "LateFailureIsReported", says: "operation of", opts: tasks,
			twist: func(w *twisted) {
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					found, err := w.Faults.Get(ctx, id)
					if e, ok := errors.AsType[*providers.Error](err); ok {
						e.Op = providers.OpGet
					}
					return found, err
				}
			},
		},
		"deleting what is locked is Permanent": {
			row: "LockedIsNeitherGoneNorPermanent", says: "class of", opts: locks,
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					err := w.Faults.Delete(ctx, id)
					if isLocked(err) {
						return providers.Wrap(providers.ErrPermanent, providers.OpDelete, "lab", id, err)
					}
					return err
				}
			},
		},
		"deleting what is locked does nothing and succeeds": {
			row: "LockedIsNeitherGoneNorPermanent", says: "An error is expected", opts: locks,
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					if err := w.Faults.Delete(ctx, id); !isLocked(err) {
						return err
					}
					return nil
				}
			},
		},
	}
}

func isLocked(err error) bool {
	said, ok := errors.AsType[*fake.BackendError](err)
	return ok && said.Status == 423
}
