package realserver

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// The tests below carry the numbers of docs/field-reports.md: what Temporal does, and
// what people expected of it.

// held is a hook that holds the first call until it is let go, whatever its context
// says, as a backend that hangs does.
type held struct {
	came             atomic.Bool
	arrived, release chan struct{}
}

func newHeld() *held { return &held{arrived: make(chan struct{}), release: make(chan struct{})} }

func (h *held) hook(context.Context) error {
	if h.came.CompareAndSwap(false, true) {
		close(h.arrived)
		<-h.release
	}
	return nil
}

// A timeout stops no code: two attempts of one create run at the same time.
func TestCase338TwoAttemptsOfOneCreateMakeOneInstance(t *testing.T) {
	timing := quick()
	timing.Create = activities.Limits{Attempt: time.Second, Total: time.Minute}
	l := newLab(t, timing)
	first := newHeld()
	l.backend.Before(providers.OpCreate, first.hook)
	l.work()
	l.apply("apply", spec)
	<-first.arrived
	l.running() // by the second attempt
	close(first.release)
	// The backend had the request all along and carries it out now, whoever still waits.
	_, err := l.backend.Provider.Create(t.Context(), l.backend.Requests()[0])
	require.NoError(t, err)
	require.Equal(t, 2, l.backend.Calls(providers.OpCreate))
	require.Len(t, l.backend.Instances(), 1)
	l.deleted()
}

func TestCase339AResultThatComesTooLateIsFoundByName(t *testing.T) {
	timing := quick()
	timing.Create = activities.Limits{Attempt: time.Second, Total: time.Minute}
	l := newLab(t, timing)
	first := newHeld()
	l.backend.After(providers.OpCreate, first.hook)
	l.work()
	l.apply("apply", spec)
	<-first.arrived
	l.running()
	close(first.release)
	require.Equal(t, 1, l.backend.Requests()[1].Attempt, "the second call is the same create")
	require.Len(t, l.backend.Instances(), 1)
	l.deleted()
}

func TestCase341AWorkerThatStopsDuringADeleteDeletesAgain(t *testing.T) {
	timing := quick()
	timing.Call = activities.Limits{Attempt: 2 * time.Second, Total: time.Minute}
	l := newLab(t, timing)
	stop := l.work()
	l.apply("apply", spec)
	l.running()
	first := newHeld()
	defer close(first.release)
	l.backend.Before(providers.OpDelete, first.hook)
	_, err := l.Delete(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	<-first.arrived
	stop() // its timeout is 0: nothing is waited for
	l.work()
	l.closed()
	require.GreaterOrEqual(t, l.backend.Calls(providers.OpDelete), 2)
}

// A cancellation reaches an activity only in the answer to a heartbeat.
func TestCase342AWatchThatHangsHearsThatItIsNotWanted(t *testing.T) {
	timing := quick()
	timing.Steady = proxy.Pace{Poll: 200 * time.Millisecond, Max: 200 * time.Millisecond, Lease: time.Hour}
	l := newLab(t, timing)
	l.throttle = time.Second
	l.born()
	heard := make(chan struct{})
	hanging := make(chan struct{})
	var came atomic.Bool
	l.backend.Before(providers.OpGet, func(ctx context.Context) error {
		if came.CompareAndSwap(false, true) {
			close(hanging)
			<-ctx.Done()
			close(heard)
		}
		return nil
	})
	<-hanging
	_, err := l.Delete(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	select {
	case <-heard:
	case <-time.After(soon):
		t.Fatal("the watch goes on")
	}
	l.closed()
}

func TestCase344APermanentErrorIsTriedOnce(t *testing.T) {
	l := newLab(t, quick())
	l.backend.Before(providers.OpCreate, fake.FailingWith(providers.ErrPermanent, "no machine type x9"))
	l.work()
	l.apply("apply", spec)
	require.Eventually(t, func() bool { return l.get().Status.Phase == v1.PhaseBlocked }, soon, tick)
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate))
	failed := 0
	for _, ev := range l.history("").Events {
		if a := ev.GetActivityTaskFailedEventAttributes(); a != nil {
			failed++
			require.Equal(t, enums.RETRY_STATE_NON_RETRYABLE_FAILURE, a.GetRetryState())
		}
	}
	require.Equal(t, 1, failed)
	l.deleted()
}

func TestCase345QuotaWaitsForMinutes(t *testing.T) {
	l := newLab(t, proxy.DefaultTiming())
	l.backend.Before(providers.OpCreate, fake.Failing(providers.ErrQuotaExceeded))
	l.work()
	l.apply("apply", spec)
	require.Eventually(t, func() bool { return l.reason() == v1.ReasonQuotaExceeded }, soon, tick)
	c, _ := l.get().Status.Condition(v1.ConditionProvisioned)
	require.GreaterOrEqual(t, l.get().Status.NextAttemptAt.Sub(c.LastTransitionTime), time.Minute)
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate))
	l.deleted()
}

func TestCase347AnOutageBeyondEveryBoundEndsNoDelete(t *testing.T) {
	timing := quick()
	timing.Call = activities.Limits{Attempt: time.Second, Total: time.Second}
	l := newLab(t, timing)
	l.born()
	l.backend.Before(providers.OpDelete, fake.Failing(providers.ErrTransient))
	_, err := l.Delete(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return l.backend.Calls(providers.OpDelete) >= 4 }, soon, tick)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, l.describe().WorkflowExecutionInfo.Status)
	l.backend.Heal()
	l.closed()
}

func TestCase348ACancelDuringACreateLeavesNothing(t *testing.T) {
	timing := quick()
	timing.Create = activities.Limits{Attempt: 2 * time.Second, Total: 2 * time.Second}
	l := newLab(t, timing)
	first := newHeld()
	defer close(first.release)
	l.backend.After(providers.OpCreate, first.hook)
	l.work()
	l.apply("apply", spec)
	<-first.arrived
	require.Len(t, l.backend.Instances(), 1)
	require.NoError(t, l.temporal.CancelWorkflow(t.Context(), l.id(), ""))
	l.closed()
}

// A deadline that passes while a watch backs off for an hour is told in time.
func TestADeadlineEndsTheWatch(t *testing.T) {
	l := newLab(t, quick())
	l.work()
	limited := spec
	limited.Deadlines.FirstHealthy = "3s"
	l.apply("apply", limited)
	require.Eventually(t, func() bool {
		c, _ := l.get().Status.Condition(v1.ConditionHealthy)
		return c.Reason == v1.ReasonNotProbed && len(c.Message) > 0 && l.late()
	}, soon, tick)
	require.Equal(t, v1.PhaseRunning, l.get().Status.Phase)
	l.deleted()
}

// late reports whether the timeline says that a proxy was not healthy in time.
func (l *lab) late() bool {
	events, err := l.Timeline(l.t.Context(), "default", l.name)
	require.NoError(l.t, err)
	for _, ev := range events {
		if ev.Reason == "FirstHealthyTimeout" {
			return true
		}
	}
	return false
}

func TestAHoldEndsByItselfAndSkippedCleanupIsTold(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	l.update(proxy.UpdateHold, proxy.HoldInput{Reason: "Banned", For: "2s"})
	require.True(t, l.get().Status.Held)
	require.Eventually(t, func() bool { return !l.get().Status.Held }, soon, tick)
	l.backend.Break(providers.ErrTransient)
	l.update(proxy.UpdateDelete, proxy.DeleteInput{Reason: "host burnt down", SkipCleanup: true})
	var r proxy.Result
	require.NoError(t, l.temporal.GetWorkflow(t.Context(), l.id(), "").Get(t.Context(), &r))
	require.Contains(t, r.Left, l.backend.Instances()[0].ID)
	require.Equal(t, "host burnt down", r.Reason)
	l.replays()
}

func TestALeftInstanceIsLeftWithoutWaitingForACall(t *testing.T) {
	for op, prepare := range map[string]func(*lab){
		providers.OpCreate: func(l *lab) { l.work(); l.apply("apply", spec) },
		providers.OpDelete: func(l *lab) {
			l.born()
			_, err := l.Delete(l.t.Context(), "default", l.name, "test", fleet.Request{})
			require.NoError(l.t, err)
		},
	} {
		t.Run(op, func(t *testing.T) {
			l := newLab(t, quick())
			call := newHeld()
			defer close(call.release)
			l.backend.Before(op, call.hook)
			prepare(l)
			<-call.arrived
			l.update(proxy.UpdateDelete, proxy.DeleteInput{Reason: "host burnt down", SkipCleanup: true})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var r proxy.Result
			require.NoError(t, l.temporal.GetWorkflow(ctx, l.id(), "").Get(ctx, &r))
			require.NotEmpty(t, r.Left)
			l.replays()
		})
	}
}

// The timer of a hold and another hold may be in one workflow task: the timer is the old
// one's.
func TestANewHoldIsNotEndedByTheTimerOfTheOldOne(t *testing.T) {
	l := newLab(t, quick())
	stop := l.work()
	l.apply("apply", spec)
	l.running()
	l.update(proxy.UpdateHold, proxy.HoldInput{For: "1s"})
	stop()
	require.Eventually(t, func() bool {
		_, byType := l.events("")
		return byType[enums.EVENT_TYPE_TIMER_FIRED] == 1
	}, soon, tick)
	held := make(chan error)
	go func() {
		_, err := l.ask("another", proxy.UpdateHold, proxy.HoldInput{Reason: "Banned"})
		held <- err
	}()
	l.work()
	require.NoError(t, <-held)
	l.told("afterwards", proxy.UpdateRetry) // a task later
	require.True(t, l.get().Status.Held)
	l.deleted()
}
