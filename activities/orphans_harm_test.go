package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// yesterday is the birth of an installation that has seen everything.
func yesterday() time.Time { return time.Now().Add(-24 * time.Hour) }

// deaf does not return from a call that a test names, whatever its context says.
type deaf struct {
	*fake.Faults
	to  string // "list", or the ID whose delete it is
	end chan struct{}
}

func (d deaf) Inventory(ctx context.Context) (providers.Inventory, error) {
	if d.to == "list" {
		<-d.end
	}
	return d.Faults.Inventory(ctx)
}

func (d deaf) Delete(ctx context.Context, id string) error {
	if d.to == id {
		<-d.end
	}
	return d.Faults.Delete(ctx, id)
}

func TestADeleteThatHangsKeepsTheProviderAndHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		backend := deaf{planted(3), fake.ID("p1"), make(chan struct{})}
		var released atomic.Bool
		report, err := sweptBy(t, &activities.Orphans{
			Instances: knowing(backend, func() { released.Store(true) }), Owners: &owners{birth: yesterday()},
		}, activities.SweepInput{})
		require.NoError(t, err)
		require.Equal(t, 2, report.Deleted)
		require.Len(t, backend.Instances(), 1)
		for _, f := range report.Findings {
			require.Equal(t, f.ID == backend.to, strings.Contains(f.Error, "does not return"), f.ID)
		}
		require.False(t, released.Load(), "it may not be closed under a call")
		close(backend.end)
		synctest.Wait()
		require.True(t, released.Load())
	})
}

func TestAListingThatHangsEndsTheSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		backend := deaf{planted(1), "list", make(chan struct{})}
		defer close(backend.end)
		_, err := sweptBy(t, &activities.Orphans{
			Instances: knowing(backend, func() {}), Owners: &owners{},
		}, activities.SweepInput{})
		require.ErrorContains(t, err, "does not return")
	})
}

// withLeftovers is a backend that lists what instances have left, too.
type withLeftovers struct {
	*fake.Faults
	left []providers.Leftover
}

func (w withLeftovers) Inventory(ctx context.Context) (providers.Inventory, error) {
	all, err := w.Faults.Inventory(ctx)
	all.Leftovers = w.left
	return all, err
}

func TestLeftoversAreCollectedUnderTheSameRules(t *testing.T) {
	t.Parallel()
	hour := time.Now().Add(-time.Hour)
	left := func(name, uid string, at time.Time) providers.Leftover {
		return providers.Leftover{
			ID: fake.ID(name), Kind: "volume", UID: uid, Installation: fake.DefaultInstallation,
			Owner: "default/" + name, CreatedAt: at,
		}
	}
	backend := withLeftovers{planted(0), []providers.Leftover{
		left("gone", "u1", hour), left("young", "u2", time.Now()), left("alive", "u3", hour),
		left("ageless", "u4", time.Time{}), left("nobodys", "", hour),
	}}
	o := &owners{birth: yesterday(), living: map[string]bool{"u3": true}}
	report, err := sweepOf(t, backend, o, activities.SweepInput{})
	require.NoError(t, err)
	require.Equal(t, 1, backend.Calls(providers.OpDelete))
	require.Equal(t, fake.ID("gone"), report.Findings[0].ID)
	require.True(t, report.Findings[0].Deleted)
	require.Equal(t, "volume", report.Findings[0].Kind)
	require.Equal(t, []int{5, 1, 1, 1, 2},
		[]int{report.Listed, report.Deleted, report.Young, report.Living, report.Doubts})
}

// Somebody adopts an instance between the ruling and the delete.
func TestAnOwnerThatIsThereAgainKeepsItsInstance(t *testing.T) {
	t.Parallel()
	o := &owners{states: map[string]activities.OwnerState{}, birth: yesterday()}
	times := 0
	o.asked = func(owner string) {
		if times++; times == 2 {
			o.states[owner] = activities.OwnerState{Found: true, Running: true, UID: "uid-0"}
		}
	}
	report, backend, err := sweep(t, 1, o, activities.SweepInput{})
	require.NoError(t, err)
	require.Zero(t, report.Deleted)
	require.Len(t, backend.Instances(), 1)
	require.Contains(t, report.Findings[0].Error, "asked again")
}

func TestTextsThatGrowAsJSONDoNotBreakTheBound(t *testing.T) {
	t.Parallel()
	o := &owners{fail: errors.New(strings.Repeat("<\x01", 500))}
	report, _, err := sweep(t, 3_000, o, activities.SweepInput{})
	require.NoError(t, err)
	require.Equal(t, 3_000, len(report.Findings)+report.Unlisted)
	raw, err := json.Marshal(report)
	require.NoError(t, err)
	require.Less(t, len(raw), 256<<10)
}

func TestWhatIsDeletedIsListedBeforeAnyDoubt(t *testing.T) {
	t.Parallel()
	o := &owners{states: map[string]activities.OwnerState{"default/p999": {Found: true, Ended: true}}}
	report, _, err := sweep(t, 1_000, o, activities.SweepInput{})
	require.NoError(t, err)
	require.Equal(t, 1, report.Deleted)
	require.Equal(t, fake.ID("p999"), report.Findings[0].ID)
	require.Positive(t, report.Unlisted)
}

func TestEverythingThatIsThereCanBeTold(t *testing.T) {
	t.Parallel()
	backend := planted(2)
	backend.SetCreatedAt(fake.ID("p1"), time.Now())
	o := &owners{living: map[string]bool{"uid-0": true}}
	for everything, want := range map[bool]int{false: 0, true: 2} {
		report, err := sweepOf(t, backend, o, activities.SweepInput{Plan: true, Everything: everything})
		require.NoError(t, err)
		require.Len(t, report.Findings, want)
	}
}

func TestARefusedSweepIsNoSuccess(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{5: 1, 6: 0} {
		registry := prometheus.NewRegistry()
		hands := &activities.Orphans{
			Instances: knowing(planted(n), func() {}), Owners: &owners{birth: yesterday()},
			Metrics: activities.NewSweepMetrics(registry),
		}
		_, err := sweptBy(t, hands, activities.SweepInput{})
		require.NoError(t, err)
		got, err := testutil.GatherAndCount(registry, "egressfleet_sweep_last_success_timestamp_seconds")
		require.NoError(t, err)
		require.Equal(t, want, got, "%d orphans", n)
	}
}

// A backend may be configured under two names: whose an instance is does not depend on
// the name that lists it.
func TestAnotherNameOfABackendSparesWhatIsOwned(t *testing.T) {
	t.Parallel()
	backend := planted(3)
	o := &owners{birth: yesterday(), living: map[string]bool{"uid-0": true}, states: map[string]activities.OwnerState{
		"default/p1": {Found: true, Running: true, UID: "uid-1"},
		"default/p2": {Found: true, Ended: true},
	}}
	for i, name := range []string{"lab", "lab-again"} {
		report, err := sweepOf(t, backend, o, activities.SweepInput{Provider: name})
		require.NoError(t, err)
		require.Equal(t, 1-i, report.Deleted, "what one has deleted is not there for the other")
		require.Equal(t, 2, report.Living, name)
	}
	require.Len(t, backend.Instances(), 2)
}
