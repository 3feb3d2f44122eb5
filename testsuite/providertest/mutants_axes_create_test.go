package providertest_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// choosing are the options of a reference that differs from the plain one.
func choosing(choose func(*providers.Profile)) []fake.Option {
	p := plainProfile()
	choose(&p)
	return []fake.Option{fake.WithProfile(p)}
}

func allocated() []fake.Option {
	return choosing(func(p *providers.Profile) { p.PrimaryKey = providers.KeyAllocated })
}

func axesCreateMutants() map[string]mutant {
	return map[string]mutant{
		"a create that submits waits all the same": {
			row: "SubmitReturnsBeforeRunning", says: "Create only submits",
			opts: choosing(func(p *providers.Profile) { p.Readiness = providers.ReadinessProvisioningWindow }),
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					w.Finish(id)
					return id, err
				}
			},
		},
		"the range of keys has ten": {
			row: "AllocatedIDsAreDistinct", says: "the ID leads to the instance that was asked for", opts: allocated(),
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					if all := w.Instances(); len(all) > 10 {
						id = all[0].ID
					}
					return id, err
				}
			},
		},
		"the ID is the bare key": {
			row: "AllocatedIDHoldsTheName", says: "holds the name",
			also: []string{
				"ReusedKeyIsAnotherInstance", "StoppedAfterwardsIsStopped", "UnknownStateIsStopped",
				"CutOffPartIsNeverNotFound", "WithoutUIDIsListed",
			},
			opts: allocated(), twist: bareKey,
		},
		"whatever has the key is the instance": {
			row: "ReusedKeyIsAnotherInstance", says: "whose key may have been given away", opts: allocated(),
			twist: func(w *twisted) {
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					return w.Faults.Get(ctx, w.withKeyOf(id))
				}
				w.remove = func(ctx context.Context, id string) error { return w.Faults.Delete(ctx, w.withKeyOf(id)) }
			},
		},
		"a create adopts the dying instance": {
			row: "DyingIsNotAdopted", says: "is being deleted",
			opts: []fake.Option{fake.WithSlowDelete(), fake.WithPace(pace)},
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					if err != nil && strings.Contains(err.Error(), "still being deleted") {
						return fake.ID(req.Name), nil
					}
					return id, err
				}
			},
		},
		"a create does not wait for a lagging read": {
			row: "LaggingReadIsWaitedFor", says: "no such instance",
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					if w.Lags() {
						w.Hide(id)
					}
					return id, err
				}
			},
		},
	}
}

// withKeyOf returns the ID of what has the key of an ID now.
func (w *twisted) withKeyOf(id string) string {
	key, _, _ := strings.Cut(id, "-")
	for _, i := range w.Instances() {
		if keyed.MatchString(id) && strings.HasPrefix(i.ID, key+"-") {
			return i.ID
		}
	}
	return id
}

var keyed = regexp.MustCompile(`^mem/[0-9]+-proxy-[a-z2-7]{16}$`)

// bareKey leaves the name out of every ID that it shows, and finds it again.
func bareKey(w *twisted) {
	short := func(id string) string { key, _, _ := strings.Cut(id, "-"); return key }
	long := func(id string) string {
		for _, i := range w.Instances() {
			if short(i.ID) == id {
				return i.ID
			}
		}
		if key, ok := strings.CutPrefix(id, "mem/"); ok && key != "" && strings.Trim(key, "0123456789") == "" {
			return id + "-gone"
		}
		return strings.ReplaceAll(id, "-", "?")
	}
	w.renames(short, long)
}

func axesMarkMutants() map[string]mutant {
	window := choosing(func(p *providers.Profile) { p.GCMark = providers.MarkWindow })
	return map[string]mutant{
		"an instance without marks is listed": {
			row: "UnmarkedIsNotListed", says: "an instance without marks is listed", opts: window,
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(ctx)
					for _, i := range w.Instances() {
						if i.UID == "" && i.Installation == "" && i.ID != fake.ID("bare") {
							all = append(all, i)
						}
					}
					return all, err
				}
			},
		},
		"each restart makes another instance": {
			row: "HalfMadeIsTakenUp", says: "one Proxy has one instance",
			twist: func(w *twisted) {
				var dead atomic.Bool
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					defer func() {
						if r := recover(); r != nil {
							dead.Store(true)
							panic(r)
						}
					}()
					if dead.Load() {
						req.Name += "-again"
					}
					return w.Faults.Create(ctx, req)
				}
			},
		},
		"a restarted worker writes the time anew": {
			row: "WrittenCreatedAtSurvivesARestart", says: "before the restart",
			opts: choosing(func(p *providers.Profile) { p.CreatedAt = providers.CreatedAtWritten }),
			twist: func(w *twisted) {
				var known sync.Map
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					there := len(w.Instances())
					id, err := w.Faults.Create(ctx, req)
					if _, mine := known.LoadOrStore(id, true); !mine && there == len(w.Instances()) && err == nil {
						w.SetCreatedAt(id, time.Now().Add(time.Second))
					}
					return id, err
				}
			},
		},
	}
}
