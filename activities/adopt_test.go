package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// adopters is a stand-in for the fleet that an adoption asks.
type adopters struct {
	*owners
	mu      sync.Mutex
	started []string
	refuse  error
	unread  error
}

func (a *adopters) FromMarks(activities.Marked) (v1.Proxy, error) { return v1.Proxy{}, a.unread }

func (a *adopters) Adopt(_ context.Context, m activities.Marked) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse == nil {
		a.started = append(a.started, m.Owner)
	}
	return a.refuse
}

func adoptOf(
	t *testing.T, p providers.Provider, a *adopters, in activities.AdoptInput,
) (report activities.AdoptReport, err error) {
	t.Helper()
	var s sdktest.WorkflowTestSuite
	env := s.NewTestActivityEnvironment()
	hands := &activities.Adoption{Instances: knowing(p, func() {}), Fleet: a}
	env.RegisterActivity(hands)
	in.Provider = "lab"
	v, err := env.ExecuteActivity(hands.AdoptInstances, in)
	if err == nil {
		require.NoError(t, v.Get(&report))
	}
	return report, err
}

func TestAPlanAdoptsNothing(t *testing.T) {
	t.Parallel()
	a := &adopters{owners: &owners{}}
	r, err := adoptOf(t, planted(3), a, activities.AdoptInput{Plan: true})
	require.NoError(t, err)
	require.Equal(t, []int{3, 0}, []int{r.Adoptable, r.Adopted})
	require.Empty(t, a.started)
	r, err = adoptOf(t, planted(3), a, activities.AdoptInput{})
	require.NoError(t, err)
	require.Equal(t, []int{3, 3}, []int{r.Adoptable, r.Adopted})
	require.ElementsMatch(t, []string{"default/p0", "default/p1", "default/p2"}, a.started)
}

func TestWhoIsFasterIsNoFault(t *testing.T) {
	t.Parallel()
	state := activities.OwnerState{Found: true, Running: true, UID: "uid-0"}
	for name, tc := range map[string]struct {
		now  activities.OwnerState
		want []int // living, left, orphans
	}{
		"somebody else has adopted it":   {state, []int{1, 0, 0}},
		"somebody else is about to":      {activities.OwnerState{Found: true, Running: true}, []int{0, 1, 0}},
		"somebody has applied a new one": {activities.OwnerState{Found: true, Running: true, UID: "v"}, []int{0, 0, 1}},
		"one was between, and ended":     {activities.OwnerState{Found: true, UID: "v"}, []int{0, 0, 1}},
		"it was between, and ended":      {activities.OwnerState{Found: true, UID: "uid-0", Ended: true}, []int{0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &adopters{owners: &owners{states: map[string]activities.OwnerState{}}, refuse: activities.ErrOwned}
			first := true
			a.asked = func(owner string) {
				if !first {
					a.states[owner] = tc.now
				}
				first = false
			}
			r, err := adoptOf(t, planted(1), a, activities.AdoptInput{})
			require.NoError(t, err)
			require.Zero(t, r.Adopted)
			require.Equal(t, tc.want, []int{r.Living, r.Left, r.Orphans})
			for _, c := range r.Claims {
				require.Empty(t, c.Error)
			}
		})
	}
}

func TestAnAdoptionThatFailsIsToldAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	a := &adopters{owners: &owners{}, refuse: errors.New("connection refused")}
	r, err := adoptOf(t, planted(2), a, activities.AdoptInput{})
	require.NoError(t, err)
	require.Equal(t, []int{2, 0}, []int{r.Adoptable, r.Adopted})
	require.Contains(t, r.Claims[0].Error, "connection refused")
	a.refuse = nil
	r, err = adoptOf(t, planted(2), a, activities.AdoptInput{})
	require.NoError(t, err)
	require.Equal(t, 2, r.Adopted)
}

func TestNothingIsAdoptedWhereTheBackendCannotBeListed(t *testing.T) {
	t.Parallel()
	backend := planted(2)
	no := providers.Wrap(providers.ErrPermanent, providers.OpList, "lab", "", errors.New("no"))
	backend.NextErr(providers.OpList, no)
	a := &adopters{owners: &owners{}}
	_, err := adoptOf(t, backend, a, activities.AdoptInput{})
	require.Error(t, err)
	require.Empty(t, a.started)
}

func TestAReportOfManyClaimsIsBoundedAndTellsFirstWhatWasLeft(t *testing.T) {
	t.Parallel()
	backend := planted(3_000)
	backend.Plant(providers.Instance{ID: fake.ID("z"), UID: "z", Installation: fake.DefaultInstallation})
	r, err := adoptOf(t, backend, &adopters{owners: &owners{}}, activities.AdoptInput{})
	require.NoError(t, err)
	require.Equal(t, []int{3_000, 1}, []int{r.Adopted, r.Left})
	require.Equal(t, activities.WhyNoOwner, r.Claims[0].Why)
	require.Equal(t, 3_001, len(r.Claims)+r.Unlisted)
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(raw), 256<<10)
}

func TestThePagesOfARollAreSmallAndHaveNobodyElse(t *testing.T) {
	t.Parallel()
	const many = 20_000
	backend := planted(many)
	backend.Plant(providers.Instance{ID: fake.ID("z"), UID: "z", Owner: "a/b", Installation: "another"})
	backend.Plant(providers.Instance{
		ID: fake.ID("y"), UID: "y", Owner: "a/c", Deleting: true, Installation: fake.DefaultInstallation,
	})
	var s sdktest.WorkflowTestSuite
	env := s.NewTestActivityEnvironment()
	hands := &activities.Adoption{Instances: knowing(backend, func() {}), Fleet: &adopters{owners: &owners{}}}
	env.RegisterActivity(hands)
	var all, page []string
	for after := ""; len(all) == 0 || len(page) == activities.RollPage; after = page[len(page)-1] {
		v, err := env.ExecuteActivity(hands.RollCall, "lab", after)
		require.NoError(t, err)
		page = nil
		require.NoError(t, v.Get(&page))
		raw, err := json.Marshal(page)
		require.NoError(t, err)
		require.Less(t, len(raw), 256<<10)
		if all = append(all, page...); len(page) == 0 {
			break
		}
	}
	require.Len(t, all, 2*many, "an owner and a UID of each")
	require.True(t, slices.IsSorted(all))
	require.Len(t, slices.Compact(all), 2*many, "each once")
}
