package providertest_test

import (
	"context"
	"errors"
	"strings"
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
			also: []string{
				"ConcurrentCreatesOfOneNameMakeOne", "CutOffCreateResumes", "CreateNeverSaysNotFound",
				"ForeignUIDIsPermanent", "ForeignInstallationIsPermanent", "IDIsLocationAndName",
				"ErrorsSayWhatFailed", "LaggingReadIsWaitedFor", "HalfMadeIsTakenUp", "ThreeCreatesMakeOne",
				"OneUIDWinsAName", "CreateAndDeleteMayOverlap", "ListMayOverlapOthers",
				"HalfMarkedIsNeverAdopted", "NameIsALabel",
			},
			twist: func(w *twisted) {
				var n atomic.Int32
				w.asks(func(req *providers.CreateRequest) { req.Name += "-" + string('a'+rune(n.Add(1)%26)) })
			},
		},
		"a repeated create makes the instance anew": {
			row: "CreateIsIdempotent", says: "the instance is the same one",
			also: []string{
				"CreateNeverSaysNotFound", "ForeignUIDIsPermanent", "ForeignInstallationIsPermanent",
				"UnreachableIsNeverNotFound", "ErrorsSayWhatFailed", "OnlyTheInstanceCountsAsMissing",
				"OneUIDWinsAName", "HalfMarkedIsNeverAdopted",
			},
			twist: func(w *twisted) {
				turn := make(chan struct{}, 1)
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					turn <- struct{}{}
					defer func() { <-turn }()
					w.Lose(fake.ID(req.Name))
					return w.Faults.Create(ctx, req)
				}
			},
		},
		"a create that overlaps another makes a second instance": {
			row: "ConcurrentCreatesOfOneNameMakeOne", says: "all of them return the one instance",
			also: []string{"ThreeCreatesMakeOne", "OneUIDWinsAName", "CreateAndDeleteMayOverlap"},
			twist: func(w *twisted) {
				var running sync.Map
				w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
					runtimeYield() // a delete that began with it is over
					name := req.Name
					if _, overlaps := running.LoadOrStore(name, true); overlaps {
						req.Name += "-again"
					} else {
						defer running.Delete(name)
					}
					return w.Faults.Create(ctx, req)
				}
				w.After(providers.OpCreate, func(context.Context) error { runtimeYield(); return nil })
			},
		},
		"creates at the same time get one ID": {
			row: "ConcurrentCreatesAreApart", says: "the ID leads to the instance that was asked for",
			twist: sharesIDs,
		},
		"a create that was cut off stays half made": {
			row: "CutOffCreateResumes", says: "the instance runs",
			also: []string{"CancelledCallReturns", "SecretsSurviveAStall", "ContextReachesTheBackend"},
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
			also: []string{"EndedContextReturnsAtOnce", "CancelledCallReturns"},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if e.Op == providers.OpCreate && ended(e) {
						e.Class = providers.ErrPermanent
					}
					return e
				})
			},
		},
		"a read lags behind the create, once there are many": {
			row: "GetSeesWhatCreateReturned", says: "no such instance",
			also: []string{
				"ConcurrentCreatesAreApart", "CutOffCreateResumes", "EverythingAtOnce", "OneUIDWinsAName",
				"ListMayOverlapOthers",
			},
			twist: func(w *twisted) {
				var seen sync.Map
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					if _, again := seen.LoadOrStore(id, true); !again && len(w.Requests()) > 5 {
						return nil, notFound(id)
					}
					return w.Faults.Get(ctx, id)
				}
			},
		},
		"a dying instance is believed to be gone": {
			row: "RecreateMakesAFreshOne", says: "still being deleted",
			also: []string{
				"GetShowsADyingInstance", "DeleteLeavesNothing", "DeletedLeavesTheList", "DyingIsNotAdopted",
				"HalfMadeIsTakenUp", "CreateAndDeleteMayOverlap",
			},
			opts:  []fake.Option{fake.WithSlowDelete(), fake.WithPace(pace)},
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
			also: []string{
				"CutOffCreateResumes", "ForeignUIDIsPermanent", "ForeignInstallationIsPermanent",
				"UnreachableIsNeverNotFound", "EndedContextReturnsAtOnce", "CancelledCallReturns",
				"ErrorsSayWhatFailed", "OnlyTheInstanceCountsAsMissing", "NoCapacityHasItsClass",
				"OneUIDWinsAName", "HalfMarkedIsNeverAdopted", "TooLargeCloudInitIsPermanent", "NameIsALabel",
				"UnpreparedCreateMakesNothing",
			},
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

// ended reports whether a call failed for the end of its context.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// bareName shows every ID without its location, and takes it so.
func bareName(w *twisted) {
	short := func(id string) string { return strings.TrimPrefix(id, "mem/") }
	long := func(id string) string {
		if strings.HasPrefix(id, "proxy-") {
			return fake.ID(id)
		}
		return "?" + id
	}
	w.renames(short, long)
}

func notFound(id string) error {
	return providers.Wrap(providers.ErrNotFound, providers.OpGet, "lab", id, errors.New("no such instance"))
}

func runtimeYield() { <-time.After(time.Millisecond) }

// sharesIDs answers creates at the same time with one ID. Calls for one name are left
// alone: other rows look at those.
func sharesIDs(w *twisted) {
	var running atomic.Int32
	var first atomic.Value
	w.create = func(ctx context.Context, req providers.CreateRequest) (string, error) {
		defer running.Add(-1)
		alone := running.Add(1) == 1
		id, err := w.Faults.Create(ctx, req)
		if alone && err == nil {
			first.Store([2]string{req.Name, id})
		}
		runtimeYield()
		if of, ok := first.Load().([2]string); !alone && ok && of[0] != req.Name && err == nil {
			id = of[1]
		}
		return id, err
	}
}
