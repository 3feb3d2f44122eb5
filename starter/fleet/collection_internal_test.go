package fleet

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

func TestACollectionIsToldAsNumbersAndAReason(t *testing.T) {
	t.Parallel()
	r := gc.Result{Sweeps: []gc.Sweep{
		{SweepReport: activities.SweepReport{
			Provider: "a", Listed: 9, Living: 4, Young: 1, Doubts: 1, Convicts: 3, Deleted: 2,
			Findings: []activities.Finding{{ID: "x", Error: "no"}, {ID: "y"}},
		}},
		{SweepReport: activities.SweepReport{Provider: "b", Refused: "too many"}},
		{SweepReport: activities.SweepReport{Provider: "c"}, Fault: &activities.Fault{Text: "it hangs"}},
	}}
	require.Equal(t, []v1.Collected{
		{Provider: "a", Listed: 9, Living: 4, Young: 1, Doubts: 1, Orphans: 3, Deleted: 2, Failed: 1},
		{Provider: "b", Note: "too many"},
		{Provider: "c", Note: "it hangs"},
	}, collected(r))
}

func TestACollectionThatFailedSaysWhyAndWhetherThatWasOnPurpose(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	before := v1.Collection{EndedAt: at.Add(-time.Hour), Providers: []v1.Collected{{Provider: "a", Listed: 1}}}
	result := gc.Result{Sweeps: []gc.Sweep{{SweepReport: activities.SweepReport{Provider: "b", Refused: "too many"}}}}
	with := func(change func(*v1.Collection)) v1.Collection {
		c := before
		c.FailedAt = at
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		failure error
		want    v1.Collection
	}{
		"refused": {
			temporal.NewNonRetryableApplicationError("b: too many", gc.ErrRefused, nil, result),
			with(func(c *v1.Collection) {
				c.Failure, c.Refused, c.Providers = "b: too many", true, []v1.Collected{{Provider: "b", Note: "too many"}}
			}),
		},
		"refused, without what it saw": {
			temporal.NewNonRetryableApplicationError("b: too many", gc.ErrRefused, nil),
			with(func(c *v1.Collection) { c.Failure, c.Refused = "b: too many", true }),
		},
		"failed": {
			temporal.NewNonRetryableApplicationError("it hangs", "Transient", nil),
			with(func(c *v1.Collection) { c.Failure = "it hangs" }),
		},
		"out of time": {errors.New("timeout"), with(func(c *v1.Collection) { c.Failure = "timeout" })},
		"not to tell": {nil, with(func(c *v1.Collection) { c.Failure = "its error could not be read" })},
	} {
		require.Equal(t, c.want, failed(before, at, c.failure), name)
	}
}

func TestASchedulesFirstRunIsStillToCome(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	began := now.Add(-59 * time.Second)
	for name, c := range map[string]struct {
		state ScheduleState
		at    time.Time // zero: it is late
	}{
		"it is due later":           {ScheduleState{NextRun: now.Add(time.Minute)}, now.Add(time.Minute)},
		"it is due now":             {ScheduleState{NextRun: now}, now},
		"it was due":                {ScheduleState{NextRun: now.Add(-time.Second)}, time.Time{}},
		"it is not planned":         {ScheduleState{}, time.Time{}},
		"it is paused":              {ScheduleState{Paused: true, NextRun: now.Add(time.Minute)}, time.Time{}},
		"it has just begun":         {ScheduleState{LastRun: began, NextRun: now.Add(1)}, began},
		"it began long ago":         {ScheduleState{LastRun: now.Add(-time.Minute), NextRun: now.Add(1)}, time.Time{}},
		"it is not the first":       {ScheduleState{Runs: 2, LastRun: began, NextRun: now.Add(1)}, time.Time{}},
		"it began by another clock": {ScheduleState{LastRun: now.Add(time.Second)}, now.Add(time.Second)},
	} {
		var first *FirstRunError
		err := firstRun(c.state, now, ErrNoRun)
		require.ErrorIs(t, err, ErrNoRun, name)
		require.Equal(t, !c.at.IsZero(), errors.As(err, &first), name)
		if first != nil {
			require.Equal(t, c.at, first.At, name)
			require.NotContains(t, first.Error(), "ended well", name)
		}
	}
}
