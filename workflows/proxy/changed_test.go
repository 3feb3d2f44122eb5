package proxy

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestATimeOfAChangeIsNeverBeforeAnother(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Date(2026, 11, 30, 12, 0, s, 0, time.UTC) }
	for name, tc := range map[string]struct{ now, began, last, want time.Time }{
		"the first of a run":                   {at(5), at(4), time.Time{}, at(5)},
		"a later one":                          {at(9), at(4), at(5), at(9)},
		"a clock that is behind, at the start": {at(3), at(4), time.Time{}, at(4)},
		"a clock that went back":               {at(7), at(4), at(9), at(9)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, changedAt(tc.now, tc.began, tc.last))
		})
	}
}

func TestOnlyATimeOfTheRunItselfIsFollowed(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		value any // nil: none
		want  bool
	}{
		"none":                  {nil, false},
		"of the run before":     {began.Add(-time.Nanosecond), false},
		"at its start":          {began, true},
		"later":                 {began.Add(time.Hour), true},
		"of another time zone":  {began.In(time.FixedZone("CET", 3600)), true},
		"what is no time":       {"yesterday", false},
		"a time that was unset": {(*time.Time)(nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fields := &common.SearchAttributes{IndexedFields: map[string]*common.Payload{}}
			if tc.value != nil {
				payload, err := converter.GetDefaultDataConverter().ToPayload(tc.value)
				require.NoError(t, err)
				fields.IndexedFields["ProxyChanged"] = payload
			}
			changed, followed := Followed(began, fields)
			require.Equal(t, tc.want, followed)
			require.Equal(t, !tc.want, changed.IsZero())
		})
	}
	_, followed := Followed(began, nil)
	require.False(t, followed)
}

// dated collects the times that a proxy says it changed at, beside its memos.
func (sc *scene) dated() (times *[]time.Time, memos *int) {
	times, memos = new([]time.Time), new(int)
	sc.OnUpsertMemo(mock.Anything).Run(func(mock.Arguments) { *memos++ }).Return(nil)
	sc.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		all, is := args.Get(0).(temporal.SearchAttributes)
		require.True(sc.t, is)
		if at, said := all.GetTime(attrChanged); said {
			*times = append(*times, at)
		}
	}).Return(nil)
	return times, memos
}

func TestEachMemoIsDated(t *testing.T) {
	sc := newScene(t)
	times, memos := sc.dated()
	sc.at(time.Hour, func() { sc.tell(UpdateHold, "hold", HoldInput{Reason: "why"}) })
	sc.at(2*time.Hour, func() { sc.tell(UpdateHold, "more", HoldInput{Reason: "another why"}) }) // only the memo
	sc.deleteAt(3 * time.Hour)
	sc.runs()
	require.NotZero(t, *memos)
	require.Len(t, *times, *memos)
	require.IsNonDecreasing(t, nanos(*times))
	require.Greater(t, (*times)[len(*times)-1].Sub((*times)[0]), 2*time.Hour)
}

func nanos(times []time.Time) (all []int64) {
	for _, at := range times {
		all = append(all, at.UnixNano())
	}
	return all
}

func TestARunThatShowsNothingNewIsDatedAllTheSame(t *testing.T) {
	sc := newScene(t)
	times, memos := sc.dated()
	state := State{Spec: sc.spec, Generation: 1, Deleting: true}
	e := entity{uid: testUID, namespace: "default", name: "a", state: state}
	raw, err := json.Marshal(e.proxy())
	require.NoError(t, err)
	state.Published = v1.Digest(raw)
	sc.ExecuteWorkflow(WorkflowType, Input{UID: testUID, State: &state})
	require.NoError(t, sc.GetWorkflowError())
	require.NotEmpty(t, *times)
	require.Less(t, *memos, len(*times), "the first memo is that of the run before")
}

// TestARunOfBeforeDatesNothing pins the version before: its histories know no such command.
func TestARunOfBeforeDatesNothing(t *testing.T) {
	sc := newScene(t)
	sc.OnGetVersion(changeRound, workflow.Version(versionFirst), workflow.Version(versionNewest)).
		Return(workflow.Version(versionPrepare))
	times, memos := sc.dated()
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Empty(t, *times)
	require.NotZero(t, *memos)
}
