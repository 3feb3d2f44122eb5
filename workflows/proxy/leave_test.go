package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

var leave = DeleteInput{Reason: "host burnt down", SkipCleanup: true}

// result executes the proxy until it closes and returns what it says in the end.
func (sc *scene) result() (r Result) {
	sc.t.Helper()
	sc.ExecuteWorkflow(WorkflowType, Input{Spec: sc.spec})
	require.True(sc.t, sc.IsWorkflowCompleted())
	require.NoError(sc.t, sc.GetWorkflowError())
	require.NoError(sc.t, sc.GetWorkflowResult(&r))
	return r
}

func TestSkipCleanupClosesAndNamesWhatIsLeft(t *testing.T) {
	const left = "instance mem/proxy-"
	for name, tc := range map[string]struct {
		before func(*scene)
		left   string
	}{
		"while it runs": {func(*scene) {}, left},
		"during an outage": {
			func(sc *scene) { sc.backend.Break(providers.ErrTransient) }, left,
		},
		"while a delete is stuck": {
			func(sc *scene) { sc.tell(UpdateDelete, "delete", DeleteInput{}) }, left,
		},
		"while a delete is refused": {
			func(sc *scene) {
				sc.backend.Before(providers.OpDelete, fake.FailingWith(providers.ErrPermanent, "credentials"))
				sc.tell(UpdateDelete, "delete", DeleteInput{})
			}, left,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t, fake.WithSlowDelete())
			sc.at(30*time.Minute, func() { tc.before(sc) })
			sc.at(time.Hour, func() { sc.tell(UpdateDelete, "leave", leave) })
			begin := sc.Now()
			r := sc.result()
			require.Less(t, sc.Now().Sub(begin), time.Hour+5*time.Minute, "it does not wait")
			require.Contains(t, r.Left, tc.left)
			require.Equal(t, leave.Reason, r.Reason)
			c := sc.condition(v1.ConditionDeleting)
			require.Equal(t, v1.ReasonLeftBehind, c.Reason)
			require.Contains(t, c.Message, tc.left)
			require.Contains(t, c.Message, leave.Reason)
			require.Equal(t, 1, sc.told("SkipCleanupRequested"), "it is recorded")
			require.Len(t, sc.backend.Instances(), 1)
		})
	}
}

func TestSkipCleanupOfNothingLeavesNothing(t *testing.T) {
	sc := newScene(t)
	sc.spec.Provider = "later"
	sc.at(50*time.Minute, func() { sc.tell(UpdateDelete, "leave", leave) })
	require.Zero(t, sc.result())
	require.Equal(t, v1.ReasonInProgress, sc.condition(v1.ConditionDeleting).Reason)
}

func TestSkipCleanupAfterAnUnknownCreateNamesTheDoubt(t *testing.T) {
	sc := newScene(t)
	sc.backend.After(providers.OpCreate, fake.Failing(providers.ErrTransient))
	sc.at(10*time.Minute, func() { sc.tell(UpdateDelete, "leave", leave) })
	require.Contains(t, sc.result().Left, "unknown outcome")
}

func TestSkipCleanupNeedsAReason(t *testing.T) {
	sc := newScene(t, fake.WithSlowDelete())
	sc.at(time.Minute, func() {
		sc.UpdateWorkflow(UpdateDelete, "m", rejected(t, "reason: "), DeleteInput{SkipCleanup: true, Reason: " "})
	})
	sc.at(2*time.Minute, func() { sc.SignalWorkflow(SignalDelete, DeleteInput{SkipCleanup: true}) })
	sc.at(3*time.Minute, func() {
		require.Equal(t, v1.PhaseDeleting, sc.status().Phase, "a signal cannot be refused: it is a plain delete")
		sc.backend.FinishDeletes()
	})
	sc.runs()
}

func TestASignalMaySkipTheCleanup(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Minute, func() { sc.SignalWorkflow(SignalDelete, leave) })
	require.NotEmpty(t, sc.result().Left)
}

func TestARunOfBeforeRefusesWhatItsReleaseDoesNotKnow(t *testing.T) {
	sc := newScene(t, fake.WithSlowDelete())
	sc.OnGetVersion(changeRound, workflow.Version(versionFirst), workflow.Version(versionNewest)).
		Return(workflow.Version(versionFirst))
	sc.at(time.Minute, func() {
		sc.UpdateWorkflow(UpdateDelete, "a", rejected(t, "older release"), leave)
		sc.UpdateWorkflow(UpdateHold, "b", rejected(t, "older release"), HoldInput{For: "1h"})
		sc.SignalWorkflow(SignalDelete, leave) // a signal cannot be refused: it is a plain delete
	})
	sc.at(time.Hour, func() {
		require.Equal(t, v1.PhaseDeleting, sc.status().Phase)
		sc.backend.FinishDeletes()
	})
	sc.runs()
}

// A host that left the configuration: Get refuses its IDs for good, Delete can do nothing.
func TestWhatIsLeftAtAPlaceThatIsGoneIsNamed(t *testing.T) {
	sc := newScene(t)
	gone := &providers.Error{Class: providers.ErrPermanent, Err: &providers.LeftBehindError{Place: "host nas1"}}
	sc.at(30*time.Minute, func() {
		sc.backend.Break(providers.ErrPermanent)
		sc.backend.Before(providers.OpDelete, func(context.Context) error { return gone })
	})
	sc.at(time.Hour, func() { sc.tell(UpdateDelete, "delete", DeleteInput{}) })
	begin := sc.Now()
	r := sc.result()
	require.Less(t, sc.Now().Sub(begin), 2*time.Hour, "it does not wait")
	require.Contains(t, r.Left, "instance mem/proxy-")
	require.Contains(t, r.Reason, "host nas1 is not configured any more")
	require.Equal(t, v1.ReasonLeftBehind, sc.condition(v1.ConditionDeleting).Reason)
	require.Len(t, sc.backend.Instances(), 1, "nothing was removed")
}
