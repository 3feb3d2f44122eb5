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

func createMutants() map[string]mutant {
	return map[string]mutant{
		"every create makes another instance": {
			row: "CreateIsIdempotent", says: "a repeated Create returns the same ID",
			twist: func(w *twisted) {
				var n atomic.Int32
				w.asks(func(req *providers.CreateRequest) { req.Name += "-" + string('a'+rune(n.Add(1)%26)) })
			},
		},
		"a repeated create makes the instance anew": {
			row: "CreateIsIdempotent", says: "the instance is the same one",
			twist: func(w *twisted) {
				w.asks(func(req *providers.CreateRequest) { w.Lose(fake.ID(req.Name)) })
			},
		},
		"a create that overlaps another makes a second instance": {
			row: "ConcurrentCreatesOfOneNameMakeOne", says: "all of them return the one instance",
			twist: func(w *twisted) {
				var running atomic.Int32
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					defer running.Add(-1)
					if running.Add(1) > 1 {
						req.Name += "-again"
					}
					return w.Faults.Create(ctx, req)
				}
				w.After(providers.OpCreate, func(context.Context) error { runtimeYield(); return nil })
			},
		},
		"creates at the same time get one ID": {
			row: "ConcurrentCreatesAreApart", says: "the ID leads to the instance that was asked for",
			twist: func(w *twisted) {
				var last sync.Map
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					before, _ := last.LoadOrStore("id", id)
					return before.(string), err
				}
			},
		},
		"a create that was cut off stays half made": {
			row: "CutOffCreateResumes", says: "the instance runs",
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					cut := ctx.Err()
					id, err := w.Faults.Create(context.WithoutCancel(ctx), req)
					if cut != nil {
						w.SetState(id, providers.StateProvisioning)
						return "", providers.Wrap(providers.ErrTransient, providers.OpCreate, "lab", id, cut)
					}
					return id, err
				}
			},
		},
		"a create that was cut off is permanent": {
			row: "CutOffCreateResumes", says: "a create that was cut off may be tried again",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error { e.Class = providers.ErrPermanent; return e })
			},
		},
		"a read lags behind the create": {
			row: "GetSeesWhatCreateReturned", says: "no such instance",
			twist: func(w *twisted) {
				var seen sync.Map
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					if _, again := seen.LoadOrStore(id, true); !again {
						return nil, notFound(id)
					}
					return w.Faults.Get(ctx, id)
				}
			},
		},
		"a create adopts the dying instance": {
			row: "RecreateMakesAFreshOne", says: "no such instance", opts: []fake.Option{fake.WithSlowDelete()},
			twist: dyingIsNotFound,
		},
		"a replacement keeps the old creation time": {
			row: "RecreateMakesAFreshOne", says: "the one before",
			twist: func(w *twisted) {
				var times sync.Map
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					first, _ := times.LoadOrStore(id, time.Now())
					w.SetCreatedAt(id, first.(time.Time))
					return id, err
				}
			},
		},
		"a failed create says NotFound": {
			row: "CreateNeverSaysNotFound", says: "NotFound",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if e.Op == providers.OpCreate {
						e.Class = providers.ErrNotFound
					}
					return e
				})
			},
		},
	}
}

func dyingIsNotFound(w *twisted) {
	w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
		found, err := w.Faults.Get(ctx, id)
		if err == nil && found.Deleting {
			return nil, notFound(id)
		}
		return found, err
	}
}

func notFound(id string) error {
	return providers.Wrap(providers.ErrNotFound, providers.OpGet, "lab", id, errors.New("no such instance"))
}

func identityMutants() map[string]mutant {
	return map[string]mutant{
		"no owner is marked": {
			row: "CreateMarksTheInstance", says: "owner in Get",
			twist: func(w *twisted) { w.asks(func(req *providers.CreateRequest) { req.Owner = "" }) },
		},
		"no spec is marked": {
			row: "CreateMarksTheInstance", says: "spec mark in Get",
			twist: func(w *twisted) { w.asks(func(req *providers.CreateRequest) { req.SpecMark = "" }) },
		},
		"the list does not tell the owner": {
			row: "CreateMarksTheInstance", says: "owner in ListByTag",
			twist: func(w *twisted) { w.listShows(func(i *providers.Instance) { i.Owner = "" }) },
		},
		"a label replaces the mark of the UID": {
			row: "LabelsNeverReplaceMarks", says: "UID in Get",
			twist: func(w *twisted) {
				w.asks(func(req *providers.CreateRequest) {
					if uid, ok := req.Labels[providers.MarkUID]; ok {
						req.UID = uid
					}
				})
			},
		},
		"an instance of another UID is adopted": {
			row: "ForeignUIDIsPermanent", says: `Expected error with "Permanent"`,
			twist: func(w *twisted) { w.says(adopting()) },
		},
		"a foreign UID is named only in part": {
			row: "ForeignUIDIsPermanent", says: "the error names",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error { e.Err = errors.New("the name is taken"); return e })
			},
		},
		"a foreign UID is named to people only": {
			row: "ForeignUIDIsPermanent", says: "by this type",
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error { e.Err = errors.New(e.Err.Error()); return e })
			},
		},
		"an instance of another installation is adopted": {
			row: "ForeignInstallationIsPermanent", says: `Expected error with "Permanent"`,
			twist: func(w *twisted) { w.says(adopting()) },
		},
		"the ID is the bare name": {
			row: "IDIsLocationAndName", says: "is not <location>/<name>",
			twist: func(w *twisted) {
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					_, err := w.Faults.Create(ctx, req)
					return req.Name, err
				}
			},
		},
		"the ID is known only to the provider that made it": {
			row: "IDIsSelfContained", says: "no such instance",
			twist: func(w *twisted) {
				var made sync.Map
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					made.Store(id, true)
					return id, err
				}
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					if _, ok := made.Load(id); !ok {
						return nil, notFound(id)
					}
					return w.Faults.Get(ctx, id)
				}
			},
		},
		"the creation time is forgotten": {
			row: "UIDAndCreatedAtAreReadBack", says: "which is not within 1m0s of now",
			twist: func(w *twisted) { w.shows(func(i *providers.Instance) { i.CreatedAt = time.Time{} }) },
		},
		"the creation time is the time of the read": {
			row: "UIDAndCreatedAtAreReadBack", says: "CreatedAt never changes",
			twist: func(w *twisted) { w.shows(func(i *providers.Instance) { i.CreatedAt = time.Now() }) },
		},
		"the list says another creation time": {
			row: "UIDAndCreatedAtAreReadBack", says: "the list says the same",
			twist: func(w *twisted) { w.listShows(func(i *providers.Instance) { i.CreatedAt = time.Unix(1, 0) }) },
		},
		"the UID is remembered and not read": {
			row: "MarksSurviveARestart", says: "UID in Get of another provider",
			twist: func(w *twisted) {
				var uids sync.Map
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					id, err := w.Faults.Create(ctx, req)
					uids.Store(id, req.UID)
					return id, err
				}
				w.shows(func(i *providers.Instance) {
					i.UID = ""
					if uid, ok := uids.Load(i.ID); ok {
						i.UID = uid.(string)
					}
				})
			},
		},
	}
}

func adopting() func(*providers.Error) error {
	return func(e *providers.Error) error {
		if e.Op == providers.OpCreate && e.Class == providers.ErrPermanent {
			return nil
		}
		return e
	}
}

func runtimeYield() { <-time.After(time.Millisecond) }
