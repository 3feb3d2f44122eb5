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
			also:  []string{"ListShowsStateAndAddress"},
			twist: func(w *twisted) { w.getShows(func(i *providers.Instance) { i.IP = "" }) },
		},
		"an address is none": {
			row: "RunningHasAnAddress", says: `Running with the IP "unknown"`,
			also:  []string{"ListShowsStateAndAddress"},
			twist: func(w *twisted) { w.listShows(func(i *providers.Instance) { i.IP = "unknown" }) },
		},
		"an instance provisions for ever": {
			row: "BecomesRunning", says: "the instance runs",
			also: []string{
				"CreateIsIdempotent", "CutOffCreateResumes", "RecreateMakesAFreshOne",
				"UIDAndCreatedAtAreReadBack", "RunningHasAnAddress", "FreshIsNeverStopped",
				"GetShowsADyingInstance", "DeleteEndsInNotFound", "DeleteThatWaitsHasWaited",
				"DeleteLeavesNothing", "DeleteTouchesNoOther", "SubmitReturnsBeforeRunning",
				"HalfMadeIsTakenUp", "NoAddressYetIsProvisioning", "StoppedAfterwardsIsStopped",
				"UnknownStateIsStopped", "NoCapacityHasItsClass", "LogHasTheTiersOfTheProfile",
				"BackendCallsAreChildSpans", "CreateAndDeleteMayOverlap", "GetMayOverlapDeletes",
				"ListShowsStateAndAddress",
			},
			opts:  []fake.Option{fake.WithProvisioning()},
			twist: func(*twisted) {},
		},
		"an instance that was not started yet is Stopped": {
			row: "FreshIsNeverStopped", says: "just been created",
			also: []string{"SubmitReturnsBeforeRunning", "NoAddressYetIsProvisioning"},
			opts: []fake.Option{fake.WithProvisioning(), fake.WithPace(pace)},
			twist: func(w *twisted) {
				var seen sync.Map
				w.getShows(func(i *providers.Instance) {
					if _, again := seen.LoadOrStore(i.ID, true); !again {
						i.State = providers.StateStopped
					}
				})
			},
		},
		"a fresh instance looks deleted": {
			row: "FreshIsNeverStopped", says: "nobody has deleted it",
			also: []string{
				"RecreateMakesAFreshOne", "MalformedIDIsPermanent", "DeleteTouchesNoOther",
				"EndedContextReturnsAtOnce", "OnlyTheInstanceCountsAsMissing",
				"InstallationsLeaveEachOtherAlone",
			},
			twist: func(w *twisted) { w.getShows(func(i *providers.Instance) { i.Deleting = true }) },
		},
		"a dying instance is NotFound": {
			row: "GetShowsADyingInstance", says: "still listed",
			also: []string{
				"RecreateMakesAFreshOne", "DeleteLeavesNothing", "DeletedLeavesTheList", "DyingIsNotAdopted",
				"HalfMadeIsTakenUp", "CreateAndDeleteMayOverlap",
			},
			opts:  []fake.Option{fake.WithSlowDelete(), fake.WithPace(pace)},
			twist: dyingIsNotFound,
		},
		"a dying instance forgets its UID": {
			row: "GetShowsADyingInstance", says: "Not equal", opts: []fake.Option{fake.WithSlowDelete(), fake.WithPace(pace)},
			also: []string{"GetMayOverlapDeletes"},
			twist: func(w *twisted) {
				w.getShows(func(i *providers.Instance) {
					if i.Deleting {
						i.UID = ""
					}
				})
			},
		},
		"what was never there is Permanent": {
			row: "MissingIsNotFound", says: "Target error should be in err chain",
			also: []string{"ErrorsSayWhatFailed", "CutOffPartIsNeverNotFound"},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					ever := func(req providers.CreateRequest) bool { return fake.ID(req.Name) == e.ID }
					if e.Class == providers.ErrNotFound && !slices.ContainsFunc(w.Requests(), ever) {
						e.Class = providers.ErrPermanent
					}
					return e
				})
			},
		},
		"an unreachable backend is NotFound": {
			row: "UnreachableIsNeverNotFound", says: "without a backend",
			also: []string{"CutOffPartIsNeverNotFound"},
			twist: func(w *twisted) {
				w.says(func(e *providers.Error) error {
					if e.Op == providers.OpGet && strings.Contains(e.Error(), "does not answer") {
						e.Class = providers.ErrNotFound
					}
					return e
				})
			},
		},
		"an unreachable backend has an empty list": {
			row: "UnreachableIsNeverNotFound", says: "list without a backend",
			also: []string{"PartIsMissedWhole"},
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(ctx)
					if err != nil && strings.Contains(err.Error(), "does not answer") {
						return nil, nil
					}
					return all, err
				}
			},
		},
		"a malformed ID is NotFound": {
			row: "MalformedIDIsPermanent", says: "get of the malformed ID",
			also: []string{"ErrorsSayWhatFailed"},
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
			also: []string{"ErrorsSayWhatFailed"},
			twist: func(w *twisted) {
				w.remove = func(ctx context.Context, id string) error {
					if err := w.Faults.Delete(ctx, id); !errors.Is(err, providers.ErrPermanent) {
						return err
					}
					return nil
				}
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
		"the list has one page": {
			row: "ListHoldsWhatWasCreated", says: "the list shows the instance",
			also: []string{"ConcurrentCreatesAreApart", "CutOffCreateResumes"},
			twist: func(w *twisted) {
				w.list = func(ctx context.Context) ([]providers.Instance, error) {
					all, err := w.Faults.ListByTag(ctx)
					slices.SortFunc(all, func(a, b providers.Instance) int { return a.CreatedAt.Compare(b.CreatedAt) })
					return all[:min(2, len(all))], err
				}
			},
		},
		"the list shows every installation": {
			row: "ListHoldsOnlyItsInstallation", says: "installation of mem/",
			also: []string{
				"ListLeavesOutWhatIsNotMarked", "UnknownStateIsStopped", "InstallationsLeaveEachOtherAlone",
			},
			twist: func(w *twisted) {
				w.listsOf(func(providers.Instance) bool { return true })
			},
		},
		"the list shows what is not marked": {
			row: "ListLeavesOutWhatIsNotMarked", says: "mem/bare",
			also: []string{
				"ListHoldsOnlyItsInstallation", "UnknownStateIsStopped", "InstallationsLeaveEachOtherAlone",
			},
			twist: func(w *twisted) {
				w.listsOf(func(i providers.Instance) bool { return i.Installation != "prod" })
			},
		},
		"the list has names in the place of IDs": {
			row: "ListedIDsAreTaken", says: "malformed id",
			also: []string{
				"CutOffCreateResumes", "MarksSurviveARestart", "ListHoldsWhatWasCreated", "HalfMadeIsTakenUp",
				"UnknownStateIsStopped", "PartIsMissedWhole", "ThreeCreatesMakeOne",
				"CreateAndDeleteMayOverlap", "InstallationsLeaveEachOtherAlone",
			},
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
			also: []string{"HalfMadeIsCollected"},
			twist: func(w *twisted) {
				w.inventory = func(context.Context) (providers.Inventory, error) { return providers.Inventory{}, nil }
			},
		},
	}
}
