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

func deleteMutants() map[string]mutant {
	idle := func(w *twisted) { w.remove = func(context.Context, string) error { return nil } }
	return map[string]mutant{
		"a delete does nothing": {
			row: "DeleteEndsInNotFound", says: "Get says NotFound",
			also: []string{
				"RecreateMakesAFreshOne", "IDIsSelfContained", "GetShowsADyingInstance", "MissingIsNotFound",
				"UnreachableIsNeverNotFound", "MalformedIDIsPermanent", "DeleteThatWaitsHasWaited",
				"DeleteMayBeRepeated", "DeletesMayOverlap", "DeleteOfWhatNeverWasIsNil", "DeleteLeavesNothing",
				"DeleteTouchesNoOther", "ListedIDsAreTaken", "DeletedLeavesTheList",
				"EndedContextReturnsAtOnce", "CancelledCallReturns", "ErrorsSayWhatFailed",
				"HalfMadeIsTakenUp", "CutOffPartIsNeverNotFound", "OnlyTheInstanceCountsAsMissing",
				"LogHasTheTiersOfTheProfile", "BackendCallsAreChildSpans", "CreateAndDeleteMayOverlap",
				"GetMayOverlapDeletes", "HalfMadeIsCollected",
			},
			twist: idle,
		},
		"a delete that waits does not": {
			row: "DeleteThatWaitsHasWaited", says: "the profile says that Delete waits",
			opts: []fake.Option{fake.WithSlowDelete(), fake.WithPace(pace)},
			twist: func(w *twisted) {
				w.profile = func() providers.Profile {
					p := w.Faults.Profile()
					p.DeleteReturn = providers.DeleteWaits
					return p
				}
			},
		},
		"a second delete fails": {
			row: "DeleteMayBeRepeated", says: "no such instance",
			also: []string{
				"DeletesMayOverlap", "DeleteOfWhatNeverWasIsNil", "GetMayOverlapDeletes",
				"CreateAndDeleteMayOverlap",
			},
			twist: func(w *twisted) { w.remove = pedantic(w) },
		},
		"a delete while one runs fails": {
			row: "DeletesMayOverlap", says: "busy",
			also: []string{
				"DeleteMayBeRepeated", "DeleteOfWhatNeverWasIsNil", "CreateAndDeleteMayOverlap",
				"GetMayOverlapDeletes",
			},
			twist: func(w *twisted) {
				var once sync.Map
				w.remove = func(ctx context.Context, id string) error {
					if _, again := once.LoadOrStore(id, true); again {
						return providers.Wrap(providers.ErrTransient, providers.OpDelete, "lab", id, errors.New("busy"))
					}
					return w.Faults.Delete(ctx, id)
				}
			},
		},
		"deleting what is not there fails": {
			row: "DeleteOfWhatNeverWasIsNil", says: "no such instance",
			also: []string{
				"DeleteMayBeRepeated", "DeletesMayOverlap", "GetMayOverlapDeletes",
				"CreateAndDeleteMayOverlap",
			},
			twist: func(w *twisted) { w.remove = pedantic(w) },
		},
		"something stays behind": {
			row: "DeleteLeavesNothing", says: "but this is left",
			also: []string{
				"RecreateMakesAFreshOne", "GetShowsADyingInstance", "DeletedLeavesTheList",
				"DyingIsNotAdopted", "HalfMadeIsTakenUp", "CreateAndDeleteMayOverlap",
			},
			opts:  []fake.Option{fake.WithSlowDelete(), fake.WithPace(pace)},
			twist: dyingIsNotFound,
		},
		"a delete takes all": {
			row: "DeleteTouchesNoOther", says: "no such instance",
			also: []string{
				"UnreachableIsNeverNotFound", "ListedIDsAreTaken", "ErrorsSayWhatFailed",
				"CutOffPartIsNeverNotFound", "InstallationsLeaveEachOtherAlone",
			},
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					runtimeYield() // calls that began together are over
					err := w.Faults.Delete(ctx, id)
					for _, i := range w.Instances() {
						if err == nil {
							w.Lose(i.ID)
						}
					}
					return err
				}
			},
		},
	}
}

func pedantic(w *twisted) func(context.Context, string) error {
	turn := make(chan struct{}, 1)
	return func(ctx context.Context, id string) error {
		runtimeYield()
		turn <- struct{}{}
		defer func() { <-turn }()
		if _, err := w.Faults.Get(ctx, id); errors.Is(err, providers.ErrNotFound) {
			return providers.Wrap(providers.ErrNotFound, providers.OpDelete, "lab", id, errors.New("no such instance"))
		}
		return w.Faults.Delete(ctx, id)
	}
}

func callMutants() map[string]mutant {
	return map[string]mutant{
		"a delete ignores its context": {
			row: "EndedContextReturnsAtOnce", says: "delete",
			also: []string{"CancelledCallReturns", "SecretsSurviveAStall", "ContextReachesTheBackend"},
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					return w.Faults.Delete(context.WithoutCancel(ctx), id)
				}
			},
		},
		"a cancelled get is permanent": {
			row: "EndedContextReturnsAtOnce", says: "class of",
			also: []string{"CancelledCallReturns", "CancelledCallLeavesOthersAlone"},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if e.Op == providers.OpGet && ended(e) {
						e.Class = providers.ErrPermanent
					}
					return e
				})
			},
		},
		"a list waits for its backend whatever happens": {
			row: "CancelledCallReturns", says: "list does not return within",
			also: []string{"EndedContextReturnsAtOnce", "SecretsSurviveAStall"},
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(ctx)
					if ctx.Err() != nil {
						awaitLater()
					}
					return all, err
				}
			},
		},
		"reads of two instances at once disturb each other": {
			row: "EverythingAtOnce", says: "busy",
			also: []string{"ListMayOverlapOthers"},
			twist: func(w *twisted) {
				var reading atomic.Value
				w.get = func(ctx context.Context, id string) (*providers.Instance, error) {
					reading.Store(id)
					if runtimeYield(); reading.Load() != id {
						return nil, providers.Wrap(providers.ErrTransient, providers.OpGet, "lab", id, errors.New("busy"))
					}
					return w.Faults.Get(ctx, id)
				}
			},
		},
		"an error is no *Error": {
			row: "ErrorsSayWhatFailed", says: "want *providers.Error",
			also: []string{
				"EndedContextReturnsAtOnce", "CancelledCallReturns", "PartIsMissedWhole",
				"CutOffPartIsNeverNotFound", "NoCapacityHasItsClass", "CancelledCallLeavesOthersAlone",
				"TooLargeCloudInitIsPermanent",
			},
			twist: func(w *twisted) { w.says(func(e *providers.Error) error { return errors.Join(e.Class, e.Err) }) },
		},
		"an error has no provider": {
			row: "ErrorsSayWhatFailed", says: "provider of",
			also: []string{
				"EndedContextReturnsAtOnce", "CancelledCallReturns", "PartIsMissedWhole",
				"CutOffPartIsNeverNotFound", "NoCapacityHasItsClass", "CancelledCallLeavesOthersAlone",
				"TooLargeCloudInitIsPermanent",
			},
			twist: func(w *twisted) { w.says(func(e *providers.Error) error { e.Provider = ""; return e }) },
		},
		"an error names another operation": {
			row: "ErrorsSayWhatFailed", says: "operation of",
			also: []string{
				"EndedContextReturnsAtOnce", "CancelledCallReturns", "CutOffPartIsNeverNotFound",
				"NoCapacityHasItsClass", "CancelledCallLeavesOthersAlone", "TooLargeCloudInitIsPermanent",
			},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error { e.Op = providers.OpList; return e })
			},
		},
		"an axis of the profile has no answer": {
			row: "ProfileAnswersEveryAxis", says: "axis timeouts",
			twist: func(w *twisted) {
				w.profile = func() providers.Profile { p := w.Faults.Profile(); p.Timeouts = ""; return p }
			},
		},
		"a blocking create does not block": {
			row: "BlockingCreateReturnsARunningOne", says: "Create blocks until it runs",
			opts: []fake.Option{fake.WithProvisioning(), fake.WithPace(pace)},
			twist: func(w *twisted) {
				w.profile = func() providers.Profile {
					p := w.Faults.Profile()
					p.CreateReturn, p.IPSource = providers.CreateBlocking, providers.IPAssignedAtCreate
					return p
				}
			},
		},
	}
}

func checkMutants() map[string]mutant {
	target := func(name string) providers.TargetStatus {
		return providers.TargetStatus{Target: name, Ready: true, Reason: providers.ReasonReachable}
	}
	return map[string]mutant{
		"a check has no order": {
			row: "CheckHasOneEntryPerTarget", says: "the order is always the same",
			also: []string{"CheckReturnsWithItsContext", "CheckTellsAnOutage"},
			twist: func(w *twisted) {
				var turn atomic.Int32
				w.check = func(context.Context) []providers.TargetStatus {
					if turn.Add(1)%2 == 0 {
						return []providers.TargetStatus{target("a"), target("b")}
					}
					return []providers.TargetStatus{target("b"), target("a")}
				}
			},
		},
		"a target has two entries": {
			row: "CheckHasOneEntryPerTarget", says: "a target has one entry",
			also: []string{"CheckReturnsWithItsContext", "CheckTellsAnOutage"},
			twist: func(w *twisted) {
				w.check = func(context.Context) []providers.TargetStatus {
					return []providers.TargetStatus{target("a"), target("a")}
				}
			},
		},
		"a check fails as a whole": {
			row: "CheckReturnsWithItsContext", says: "it never fails as a whole",
			twist: func(w *twisted) {
				w.check = func(ctx context.Context) []providers.TargetStatus {
					if ctx.Err() != nil {
						return nil
					}
					return w.Faults.Check(ctx)
				}
			},
		},
		"a check outlives its context": {
			row: "CheckReturnsWithItsContext", says: "check does not return within",
			twist: func(w *twisted) {
				w.check = func(ctx context.Context) []providers.TargetStatus {
					if ctx.Err() != nil {
						awaitLater()
					}
					return w.Faults.Check(ctx)
				}
			},
		},
	}
}

func outageMutants() map[string]mutant {
	return map[string]mutant{
		"a check during an outage has no targets": {
			row: "CheckTellsAnOutage", says: "it never fails as a whole",
			twist: func(w *twisted) {
				w.check = func(ctx context.Context) (left []providers.TargetStatus) {
					for _, status := range w.Faults.Check(ctx) {
						if status.Reason != providers.ReasonUnreachable {
							left = append(left, status)
						}
					}
					return left
				}
			},
		},
		"a check tells what was last known": {
			row: "CheckTellsAnOutage", says: "is ready during an outage",
			twist: func(w *twisted) {
				w.check = func(ctx context.Context) []providers.TargetStatus {
					all := w.Faults.Check(ctx)
					for i := range all {
						if all[i].Reason == providers.ReasonUnreachable {
							all[i].Ready, all[i].Reason = true, providers.ReasonReachable
						}
					}
					return all
				}
			},
		},
	}
}

func awaitLater() { <-time.After(3 * mutantBounds) }
