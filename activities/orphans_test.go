package activities_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// owners is a stand-in for Temporal's answers.
type owners struct {
	asked  func(owner string) // called before an answer; nil for nothing
	living map[string]bool
	states map[string]activities.OwnerState
	fail   error
	birth  time.Time
}

func (o *owners) LivingUIDs(context.Context) (map[string]bool, error) { return o.living, nil }

func (o *owners) Owner(_ context.Context, owner, _ string) (activities.OwnerState, error) {
	if o.asked != nil {
		o.asked(owner)
	}
	return o.states[owner], o.fail
}

func (o *owners) Birth(context.Context) (time.Time, error) { return o.birth, nil }

// sweep plants so many instances an hour old, owned by default/p<n>, and sweeps.
func sweep(t *testing.T, n int, o *owners, in activities.SweepInput) (activities.SweepReport, *fake.Faults, error) {
	t.Helper()
	backend := planted(n)
	report, err := sweepOf(t, backend, o, in)
	return report, backend, err
}

// planted is a backend with so many instances an hour old, owned by default/p<n>.
func planted(n int) *fake.Faults {
	backend := fake.WithFaults(fake.New("lab"))
	for i := range n {
		backend.Plant(providers.Instance{
			ID: fake.ID(fmt.Sprintf("p%d", i)), UID: fmt.Sprintf("uid-%d", i), Installation: fake.DefaultInstallation,
			Owner: fmt.Sprintf("default/p%d", i), State: providers.StateRunning, CreatedAt: time.Now().Add(-time.Hour),
		})
	}
	return backend
}

func sweepOf(
	t *testing.T, p providers.Provider, o *owners, in activities.SweepInput,
) (report activities.SweepReport, err error) {
	t.Helper()
	return sweptBy(t, &activities.Orphans{Instances: knowing(p, func() {}), Owners: o}, in)
}

// knowing has one provider, and calls release when it is given back.
func knowing(p providers.Provider, release func()) *activities.Instances {
	return &activities.Instances{
		Lookup:       func(string) (providers.Provider, func(), bool) { return p, release, true },
		Installation: fake.DefaultInstallation,
	}
}

func sweptBy(
	t *testing.T, hands *activities.Orphans, in activities.SweepInput,
) (report activities.SweepReport, err error) {
	t.Helper()
	var s sdktest.WorkflowTestSuite
	env := s.NewTestActivityEnvironment()
	env.RegisterActivity(hands)
	in.Provider = cmp.Or(in.Provider, "lab")
	v, err := env.ExecuteActivity(hands.SweepOrphans, in)
	if err == nil {
		require.NoError(t, v.Get(&report))
	}
	return report, err
}

func TestTenThousandInstancesAndAHundredOrphans(t *testing.T) {
	t.Parallel()
	o := &owners{living: map[string]bool{}, birth: time.Now().Add(-24 * time.Hour)}
	for i := range 10_000 {
		if i%100 != 0 {
			o.living[fmt.Sprintf("uid-%d", i)] = true
		}
	}
	report, backend, err := sweep(t, 10_000, o, activities.SweepInput{})
	require.NoError(t, err)
	require.Equal(t, 100, report.Deleted)
	require.Equal(t, 9_900, report.Living)
	require.Len(t, backend.Instances(), 9_900)
	raw, err := json.Marshal(report)
	require.NoError(t, err)
	require.Less(t, len(raw), 256<<10)
}

func TestAReportOfManyDoubtsIsBoundedAndCountsTheRest(t *testing.T) {
	t.Parallel()
	report, _, err := sweep(t, 3_000, &owners{}, activities.SweepInput{})
	require.NoError(t, err)
	require.Equal(t, 3_000, report.Doubts)
	require.LessOrEqual(t, len(report.Findings), 500)
	require.Equal(t, 3_000, len(report.Findings)+report.Unlisted)
	raw, err := json.Marshal(report)
	require.NoError(t, err)
	require.Less(t, len(raw), 256<<10)
}

func TestMoreThanTheCapIsRefusedUnlessForced(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		listed         int
		in             activities.SweepInput
		deleted        int
		refused, spare bool
	}{
		{5, activities.SweepInput{}, 5, false, false},
		{6, activities.SweepInput{}, 0, true, true},
		{6, activities.SweepInput{Force: true}, 6, false, false},
		{6, activities.SweepInput{Plan: true}, 0, true, true},
		{6, activities.SweepInput{Plan: true, Force: true, Unproven: true}, 0, false, true},
		{5, activities.SweepInput{Plan: true}, 0, false, true},
	} {
		t.Run(fmt.Sprintf("%d %+v", tc.listed, tc.in), func(t *testing.T) {
			t.Parallel()
			report, backend, err := sweep(t, tc.listed, &owners{birth: time.Now().Add(-24 * time.Hour)}, tc.in)
			require.NoError(t, err)
			require.Equal(t, tc.listed, report.Convicts)
			require.Equal(t, tc.deleted, report.Deleted)
			require.Equal(t, tc.refused, report.Refused != "")
			require.Len(t, backend.Instances(), tc.listed-tc.deleted)
			require.Len(t, report.Findings, tc.listed, "what would be deleted is told all the same")
		})
	}
}

func TestAnEmptyDatabaseDeletesNothing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 300} {
		o := &owners{birth: time.Now()} // the record was made after them
		report, backend, err := sweep(t, n, o, activities.SweepInput{Force: true})
		require.NoError(t, err)
		require.Zero(t, report.Deleted)
		require.Equal(t, n, report.Doubts)
		require.Equal(t, activities.WhyAdoptable, report.Findings[0].Why)
		require.Len(t, backend.Instances(), n)

		report, backend, err = sweep(t, n, o, activities.SweepInput{Force: true, Unproven: true})
		require.NoError(t, err)
		require.Equal(t, n, report.Deleted, "a person may know better")
		require.Empty(t, backend.Instances())
	}
}

func TestNoAnswerAboutAnOwnerKeepsIt(t *testing.T) {
	t.Parallel()
	o := &owners{birth: time.Now().Add(-24 * time.Hour), fail: errors.New("connection refused")}
	report, backend, err := sweep(t, 3, o, activities.SweepInput{Unproven: true})
	require.NoError(t, err)
	require.Equal(t, activities.WhyNotAsked, report.Findings[0].Why)
	require.Contains(t, report.Findings[0].Proof, "connection refused")
	require.Len(t, backend.Instances(), 3)
}

func TestADeleteThatFailsIsToldAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	backend := fake.WithFaults(fake.New("lab"))
	for _, name := range []string{"a", "b", "c"} {
		backend.Plant(providers.Instance{
			ID: fake.ID(name), UID: name, Installation: fake.DefaultInstallation, Owner: "default/" + name,
			State: providers.StateRunning, CreatedAt: time.Now().Add(-time.Hour),
		})
	}
	backend.Before(providers.OpDelete, fake.Once(providers.ErrTransient))
	report, err := sweepOf(t, backend, &owners{birth: time.Now().Add(-24 * time.Hour)}, activities.SweepInput{})
	require.NoError(t, err)
	require.Equal(t, 2, report.Deleted)
	var faults []string
	for _, f := range report.Findings {
		if require.NotEqual(t, f.Deleted, f.Error != ""); f.Error != "" {
			faults = append(faults, f.Error)
		}
	}
	require.Len(t, faults, 1)
	require.Contains(t, faults[0], "injected")
	require.Len(t, backend.Instances(), 1)
}

func TestAListingThatFailsDeletesNothing(t *testing.T) {
	t.Parallel()
	backend := fake.WithFaults(fake.New("lab"))
	backend.Before(providers.OpList, fake.Failing(providers.ErrPermanent))
	_, err := sweepOf(t, backend, &owners{}, activities.SweepInput{})
	require.ErrorContains(t, err, "injected")
	require.Zero(t, backend.Calls(providers.OpDelete))
}
