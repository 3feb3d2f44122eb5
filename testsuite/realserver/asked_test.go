package realserver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

func TestARequestToReplaceHasOneEffect(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	first := l.get().Status
	_, err := l.Replace(t.Context(), "default", l.name, "its address is banned", fleet.Request{ID: "once"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return l.backend.Calls(providers.OpCreate) == 2 }, soon, tick)
	l.running()
	require.Len(t, l.backend.Instances(), 1)
	require.True(t, l.get().Status.InstanceCreatedAt.After(first.InstanceCreatedAt))
	again, err := l.Replace(t.Context(), "default", l.name, "its address is banned", fleet.Request{ID: "once"})
	require.NoError(t, err)
	require.NotEmpty(t, again.Metadata.UID)
	l.running()
	require.Equal(t, 2, l.backend.Calls(providers.OpCreate))
	require.Contains(t, l.reasons(), "ReplaceRequested")
	l.deleted()
}

func TestNothingCannotBeReplaced(t *testing.T) {
	l := newLab(t, quick())
	l.blocked()
	_, err := l.Replace(t.Context(), "default", l.name, "", fleet.Request{})
	var conflict *fleet.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "status.providerID", conflict.Field)
	l.backend.Heal()
	_, err = l.Retry(t.Context(), "default", l.name, "the image is there now", fleet.Request{})
	require.NoError(t, err)
	l.running()
	require.Contains(t, l.reasons(), "RetryRequested")
	l.deleted()
}

// A backend that takes its time keeps nobody from reading what was just said.
func TestWhatWasAnsweredIsShownWhileTheBackendIsAsked(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	look := newHeld()
	l.backend.Before(providers.OpGet, look.hook)
	_, err := l.Retry(t.Context(), "default", l.name, "look again", fleet.Request{})
	require.NoError(t, err)
	<-look.arrived
	_, err = l.Hold(t.Context(), "default", l.name, v1.Hold{Reason: "Suspicious"}, fleet.Request{})
	require.NoError(t, err)
	require.True(t, l.get().Status.Held, "discovery hands it out no more")
	changed := spec
	changed.HealthCheck.Target = "target:443"
	l.apply("change", changed)
	require.EqualValues(t, 2, l.get().Metadata.Generation)
	close(look.release)
	l.deleted()
}

// A message for a generation that is gone has no effect, and one that had its effect
// is answered once more.
func TestAMessageForAnotherGenerationIsRefused(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	changed := spec
	changed.HealthCheck.Target = "target:443"
	first, second := fleet.Request{IfGeneration: 1}, fleet.Request{IfGeneration: 2}
	one := fleet.Request{ID: "one", IfGeneration: 1}
	_, _, err := l.Apply(t.Context(), l.wanted(changed), one)
	require.NoError(t, err)
	again, _, err := l.Apply(t.Context(), l.wanted(changed), one)
	require.NoError(t, err, "its answer was lost, say")
	require.EqualValues(t, 2, again.Metadata.Generation)
	l.handOver(l.runID())
	_, _, err = l.Apply(t.Context(), l.wanted(changed), one)
	require.NoError(t, err, "also by a later run")

	_, _, err = l.Apply(t.Context(), l.wanted(spec), first)
	var against *fleet.ConflictError
	require.ErrorAs(t, err, &against)
	require.True(t, against.IsPrecondition())
	require.Equal(t, `metadata.generation: "2" is not 1, which was expected`, against.Error())
	_, err = l.Delete(t.Context(), "default", l.name, "", first)
	require.ErrorAs(t, err, &against)
	_, err = l.Hold(t.Context(), "default", l.name, v1.Hold{}, first)
	require.ErrorAs(t, err, &against)
	_, err = l.Hold(t.Context(), "default", l.name, v1.Hold{}, second)
	require.NoError(t, err)
	_, _, err = l.Apply(t.Context(), v1.Proxy{
		Metadata: v1.Metadata{Namespace: "default", Name: l.name + "-x"}, Spec: spec,
	}, first)
	require.ErrorIs(t, err, fleet.ErrNotFound, "none is made")
	l.deleted()
}

func TestAHoldEndsWhenItsTimeIsOver(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	held, err := l.Hold(t.Context(), "default", l.name, v1.Hold{Reason: "billing", For: "1s"}, fleet.Request{})
	require.NoError(t, err)
	require.True(t, held.Status.Held, "the answer says so already")
	_, usable := v1.EndpointOf(held)
	require.False(t, usable, "and discovery hands it out no more")
	require.Eventually(t, func() bool {
		_, usable := v1.EndpointOf(l.get())
		return usable
	}, soon, tick, "it comes back unaided")
	require.Equal(t, []string{"HoldRequested", "Resumed"}, l.reasons()[len(l.reasons())-2:])
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate), "nothing happened at the backend")
	l.deleted()
}

func TestAHoldWithoutAnEndLastsUntilItIsResumed(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	longest := v1.Hold{For: v1.Duration(v1.MaxHold.String())}
	_, err := l.Hold(t.Context(), "default", l.name, longest, fleet.Request{})
	require.NoError(t, err)
	_, err = l.Hold(t.Context(), "default", l.name, v1.Hold{Reason: "Suspicious"}, fleet.Request{})
	require.NoError(t, err)
	c, _ := l.get().Status.Condition(v1.ConditionHeld)
	require.Equal(t, "Suspicious", c.Reason)
	p, err := l.Resume(t.Context(), "default", l.name, "it was nothing", fleet.Request{})
	require.NoError(t, err)
	require.False(t, p.Status.Held)
	l.deleted()
}

// The words that a client is held to are those of the workflow, too: the bare command
// line sends what no client has looked at.
func TestTheWorkflowHoldsAMessageToTheSameBounds(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	for _, in := range []any{
		proxy.HoldInput{For: v1.Duration((v1.MaxHold + time.Second).String())},
		proxy.HoldInput{For: v1.Duration((v1.MinHold - time.Millisecond).String())},
		proxy.HoldInput{For: "soon"},
	} {
		h, err := l.temporal.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: l.id(), UpdateName: proxy.UpdateHold, Args: []any{in},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = h.Get(t.Context(), nil)
		}
		require.ErrorContains(t, err, "for: ")
	}
	require.False(t, l.get().Status.Held)
	l.deleted()
}

func TestWhatIsLeftBehindIsNamed(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	l.backend.Before(providers.OpDelete, fake.FailingWith(providers.ErrPermanent, "the zone is gone"))
	_, err := l.Delete(t.Context(), "default", l.name, "not needed any more", fleet.Request{})
	require.NoError(t, err)
	id := l.get().Status.ProviderID
	_, err = l.Replace(t.Context(), "default", l.name, "", fleet.Request{})
	require.ErrorIs(t, err, fleet.ErrConflict, "it is being deleted")
	_, err = l.LeaveBehind(t.Context(), "default", l.name, "the zone is closed for good", fleet.Request{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var left *fleet.LeftError
	require.ErrorAs(t, l.WaitGone(ctx, "default", l.name), &left)
	require.Equal(t, "instance "+id+" on provider fake", left.Left)
	require.Equal(t, "the zone is closed for good", left.Reason)
	c, _ := left.Proxy.Status.Condition(v1.ConditionDeleting)
	require.Equal(t, v1.ReasonLeftBehind, c.Reason)
	require.Len(t, l.backend.Instances(), 1, "for whoever looks for orphans")
	_, err = l.Get(t.Context(), "default", l.name)
	require.ErrorIs(t, err, fleet.ErrNotFound)
	l.replays()
}

func TestNothingIsLeftBehindWhereNothingWas(t *testing.T) {
	l := newLab(t, quick())
	l.unheard()
	_, err := l.LeaveBehind(t.Context(), "default", l.name, "never mind", fleet.Request{})
	require.NoError(t, err)
	l.work()
	l.closed()
	require.Zero(t, l.backend.Calls(providers.OpCreate))
}

func TestToLeaveIsLeftWithTheServerWithoutAWorker(t *testing.T) {
	l := newLab(t, quick())
	stop := l.work()
	l.apply("apply", spec)
	l.running()
	stop()
	_, err := l.LeaveBehind(t.Context(), "default", l.name, "nobody is there", fleet.Request{})
	require.NoError(t, err)
	l.work()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var left *fleet.LeftError
	require.ErrorAs(t, l.WaitGone(ctx, "default", l.name), &left)
	require.Equal(t, "nobody is there", left.Reason)
	var wish proxy.DeleteInput
	for _, e := range l.history("").Events { // the update, which a server may forget, is not what counts
		if in := e.GetWorkflowExecutionSignaledEventAttributes().GetInput(); in != nil {
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(in, &wish))
		}
	}
	require.True(t, wish.SkipCleanup)
	l.replays()
}

func TestATimelineIsThatOfALivingProxy(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	events, err := l.Timeline(t.Context(), "default", l.name)
	require.NoError(t, err)
	require.Greater(t, len(events), 1)
	for i := range events[1:] {
		require.False(t, events[i+1].At.Before(events[i].At), "the newest is the last")
	}
	l.deleted()
	_, err = l.Timeline(t.Context(), "default", l.name)
	require.ErrorIs(t, err, fleet.ErrNotFound, "what is closed is gone")
}

func TestAMessageNeedsAProxyAndAWorker(t *testing.T) {
	l := newLab(t, quick())
	send := func(name string) map[string]error {
		errs := map[string]error{}
		try := func(what string, call func(context.Context) error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			errs[what] = call(ctx)
		}
		try("replace", func(ctx context.Context) error {
			_, err := l.Replace(ctx, "default", name, "", fleet.Request{})
			return err
		})
		try("retry", func(ctx context.Context) error {
			_, err := l.Retry(ctx, "default", name, "", fleet.Request{})
			return err
		})
		try("hold", func(ctx context.Context) error {
			_, err := l.Hold(ctx, "default", name, v1.Hold{}, fleet.Request{})
			return err
		})
		try("resume", func(ctx context.Context) error {
			_, err := l.Resume(ctx, "default", name, "", fleet.Request{})
			return err
		})
		try("timeline", func(ctx context.Context) error { _, err := l.Timeline(ctx, "default", name); return err })
		return errs
	}
	for what, err := range send("nobody") {
		require.ErrorIs(t, err, fleet.ErrNotFound, what)
	}
	_, err := l.LeaveBehind(t.Context(), "default", "nobody", "why not", fleet.Request{})
	require.ErrorIs(t, err, fleet.ErrNotFound)
	l.unheard()
	for what, err := range send(l.name) {
		require.ErrorIs(t, err, fleet.ErrUnavailable, what)
		require.NotErrorIs(t, err, fleet.ErrNotFound, what)
	}
	l.work()
	l.deleted()
}

// unheard starts a proxy without a worker.
func (l *lab) unheard() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Second)
	defer cancel()
	_, _, err := l.Apply(ctx, l.wanted(spec), fleet.Request{ID: "apply"})
	require.ErrorIs(l.t, err, fleet.ErrNoWorker)
}

// blocked starts a worker and a proxy whose create is refused for good.
func (l *lab) blocked() {
	l.t.Helper()
	l.backend.Before(providers.OpCreate, fake.FailingWith(providers.ErrPermanent, "no such image"))
	l.work()
	l.apply("apply", spec)
	require.Eventually(l.t, func() bool { return l.get().Status.Phase == v1.PhaseBlocked }, soon, tick)
}

// reasons are those of the timeline.
func (l *lab) reasons() (all []string) {
	l.t.Helper()
	events, err := l.Timeline(l.t.Context(), "default", l.name)
	require.NoError(l.t, err)
	for _, e := range events {
		all = append(all, e.Reason)
	}
	return all
}
