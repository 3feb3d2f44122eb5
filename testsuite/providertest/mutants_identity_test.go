package providertest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

func identityMutants() map[string]mutant {
	return map[string]mutant{
		"no owner is marked": {
			row: "CreateMarksTheInstance", says: "owner in Get",
			also: []string{
				"LabelsNeverReplaceMarks", "ForeignUIDIsPermanent", "ForeignInstallationIsPermanent",
				"MarksSurviveARestart", "InventoryAgreesWithTheList", "HalfMadeIsTakenUp",
			},
			twist: func(w *twisted) { w.asks(func(req *providers.CreateRequest) { req.Owner = "" }) },
		},
		"no spec is marked": {
			row: "CreateMarksTheInstance", says: "spec mark in Get",
			also: []string{
				"LabelsNeverReplaceMarks", "ForeignUIDIsPermanent", "ForeignInstallationIsPermanent",
				"MarksSurviveARestart", "InventoryAgreesWithTheList", "HalfMadeIsTakenUp",
			},
			twist: func(w *twisted) { w.asks(func(req *providers.CreateRequest) { req.SpecMark = "" }) },
		},
		"the list does not tell the owner": {
			row: "CreateMarksTheInstance", says: "owner in ListByTag",
			also:  []string{"LabelsNeverReplaceMarks", "MarksSurviveARestart"},
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
			also: []string{
				"CreateNeverSaysNotFound", "ForeignInstallationIsPermanent", "ErrorsSayWhatFailed",
				"OneUIDWinsAName", "HalfMarkedIsNeverAdopted",
			},
			twist: func(w *twisted) { w.says(adopting()) },
		},
		"a foreign UID is named only in part": {
			row: "ForeignUIDIsPermanent", says: "the error names",
			also: []string{"ForeignInstallationIsPermanent", "OneUIDWinsAName", "HalfMarkedIsNeverAdopted"},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if foreign(e) {
						e.Err = errors.New("the name is taken")
					}
					return e
				})
			},
		},
		"a foreign UID is named to people only": {
			row: "ForeignUIDIsPermanent", says: "by this type",
			also: []string{
				"ForeignInstallationIsPermanent", "OneUIDWinsAName", "HalfMarkedIsNeverAdopted",
				"UnpreparedCreateMakesNothing", "PrepareReturnsWithItsContext",
			},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error { e.Err = errors.New(e.Err.Error()); return e })
			},
		},
		"an instance of another installation is adopted": {
			row: "ForeignInstallationIsPermanent", says: `Expected error with "Permanent"`,
			also: []string{
				"CreateNeverSaysNotFound", "ForeignUIDIsPermanent", "ErrorsSayWhatFailed", "OneUIDWinsAName",
				"HalfMarkedIsNeverAdopted",
			},
			twist: func(w *twisted) { w.says(adopting()) },
		},
		"the ID is the bare name": {
			row: "IDIsLocationAndName", says: "is not <location>/<name>",
			also: []string{
				"MalformedIDIsPermanent", "StoppedAfterwardsIsStopped", "UnknownStateIsStopped",
				"CutOffPartIsNeverNotFound",
			},
			twist: bareName,
		},
		"the ID is known only to the provider that made it": {
			row: "IDIsSelfContained", says: "no such instance",
			also: []string{
				"MarksSurviveARestart", "UnreachableIsNeverNotFound", "MalformedIDIsPermanent",
				"ErrorsSayWhatFailed",
			},
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
			also:  []string{"RecreateMakesAFreshOne", "ListHoldsWhatWasCreated"},
			twist: func(w *twisted) { w.shows(func(i *providers.Instance) { i.CreatedAt = time.Time{} }) },
		},
		"the creation time is the time of the read": {
			row: "UIDAndCreatedAtAreReadBack", says: "CreatedAt never changes",
			also: []string{"CreateIsIdempotent"},
			twist: func(w *twisted) {
				var reads atomic.Int64
				w.shows(func(i *providers.Instance) { i.CreatedAt = time.Now().Add(time.Duration(reads.Add(1))) })
			},
		},
		"the list says another creation time": {
			row: "UIDAndCreatedAtAreReadBack", says: "the list says the same",
			twist: func(w *twisted) { w.listShows(func(i *providers.Instance) { i.CreatedAt = time.Unix(1, 0) }) },
		},
		"the UID is remembered and not read": {
			row: "MarksSurviveARestart", says: "UID in Get of another provider",
			also: []string{"IDIsSelfContained"},
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
		if foreign(e) {
			return nil
		}
		return e
	}
}

// foreign reports whether an error is about the instance of somebody else.
func foreign(e *providers.Error) bool {
	_, ok := errors.AsType[*providers.ForeignError](e)
	return ok
}
