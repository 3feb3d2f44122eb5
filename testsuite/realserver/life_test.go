package realserver

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

func TestALifeFromCreateToDelete(t *testing.T) {
	l := newLab(t, quick())
	l.work()
	p, created := l.apply("apply", spec)
	require.True(t, created)
	require.Equal(t, l.describe().WorkflowExecutionInfo.FirstRunId, p.Metadata.UID, "the UID is the first run ID")
	l.running()
	require.Equal(t, p.Metadata.UID, l.backend.Instances()[0].UID)
	require.Equal(t, "default/"+l.name, l.backend.Instances()[0].Owner)
	_, created = l.apply("again", spec)
	require.False(t, created)
	require.EqualValues(t, 1, l.get().Metadata.Generation)
	p, err := l.Delete(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	require.Equal(t, v1.PhaseDeleting, p.Status.Phase, "the answer says so already")
	l.closed()
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate))
}

func TestAnotherSpecReplacesTheInstance(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	other := spec
	other.Port++
	l.apply("other", other)
	require.Eventually(t, func() bool { return l.get().Status.ObservedGeneration == 2 }, soon, tick)
	l.running()
	require.Len(t, l.backend.Instances(), 1)
	require.Len(t, l.backend.Requests(), 2)
	require.Equal(t, other.Port, l.backend.Requests()[1].Port)
	l.deleted()
}

func TestALatchIsReleasedByRetry(t *testing.T) {
	l := newLab(t, quick())
	l.backend.Before(providers.OpCreate, fake.FailingWith(providers.ErrPermanent, "no such image"))
	l.work()
	l.apply("apply", spec)
	require.Eventually(t, func() bool { return l.get().Status.Phase == v1.PhaseBlocked }, soon, tick)
	c, _ := l.get().Status.Condition(v1.ConditionProvisioned)
	require.Contains(t, c.Message, "no such image")
	require.False(t, l.get().Status.NextAttemptAt.IsZero())
	l.backend.Heal()
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate))
	l.told("retry", proxy.UpdateRetry)
	l.running()
	l.deleted()
}

func TestQuotaRecoversUnaided(t *testing.T) {
	timing := quick()
	timing.Quota.Poll, timing.Quota.Max = 200*time.Millisecond, 200*time.Millisecond
	l := newLab(t, timing)
	l.backend.Before(providers.OpCreate, fake.Failing(providers.ErrQuotaExceeded))
	l.work()
	l.apply("apply", spec)
	require.Eventually(t, func() bool { return l.backend.Calls(providers.OpCreate) == 3 }, soon, tick)
	require.Equal(t, v1.ReasonQuotaExceeded, l.reason())
	require.Equal(t, v1.PhasePending, l.get().Status.Phase)
	l.backend.Heal()
	l.running()
	l.deleted()
}

func TestALostInstanceIsMadeAgain(t *testing.T) {
	timing := quick()
	timing = timing.WithSteadyPoll(200 * time.Millisecond)
	l := newLab(t, timing)
	l.born()
	l.backend.Lose(l.backend.Instances()[0].ID)
	require.Eventually(t, func() bool { return l.backend.Calls(providers.OpCreate) == 2 }, soon, tick)
	l.running()
	require.Equal(t, 2, l.backend.Requests()[1].Attempt)
	l.deleted()
}

// A worker that dies after the backend has acted leaves a Create of unknown outcome.
// Whether the proxy lives on or is deleted, there is one instance or none.
func TestAWorkerKilledAfterCreateMakesNoSecondInstance(t *testing.T) {
	for i := range 5 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			timing := quick()
			timing.Create = activities.Limits{Attempt: 3 * time.Second, Total: time.Minute}
			l := newLab(t, timing)
			made, dead := l.dieAfterCreate()
			stop := l.work()
			l.apply("apply", spec)
			<-made
			stop() // the default stop timeout is 0: nothing is drained
			defer close(dead)
			l.backend.Heal()
			l.work()
			l.running()
			require.Equal(t, 2, l.backend.Calls(providers.OpCreate))
			require.Len(t, l.backend.Instances(), 1)
			l.deleted()
		})
	}
}

func TestDeleteDuringACreateThatNeverAnswersLeavesNothing(t *testing.T) {
	timing := quick()
	timing.Create = activities.Limits{Attempt: time.Second, Total: time.Second} // no second attempt
	l := newLab(t, timing)
	made, dead := l.dieAfterCreate()
	defer close(dead)
	l.work()
	l.apply("apply", spec)
	<-made
	_, err := l.Delete(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	require.Len(t, l.backend.Instances(), 1)
	l.closed()
	require.Positive(t, l.backend.Calls(providers.OpList), "it was looked for by UID")
}

func TestDeleteAndRecreateOfOneName(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	first := l.get().Metadata.UID
	l.deleted()
	p, created := l.apply("another", spec)
	require.True(t, created)
	require.NotEqual(t, first, p.Metadata.UID)
	l.running()
	require.Equal(t, p.Metadata.UID, l.backend.Instances()[0].UID)
	l.deleted()
}

func TestAnOutageWritesNoHistoryWhileItLasts(t *testing.T) {
	timing := quick()
	timing = timing.WithSteadyPoll(200 * time.Millisecond)
	l := newLab(t, timing)
	l.born()
	before, _ := l.events("")
	l.backend.Break(providers.ErrTransient)
	require.Eventually(t, func() bool { return l.reason() == v1.ReasonTransientError }, soon, tick)
	require.Equal(t, v1.PhaseRunning, l.get().Status.Phase, "it ran when it could last be asked")
	began, _ := l.events("")
	l.looked(8)
	during, _ := l.events("")
	require.Equal(t, began, during)
	l.backend.Heal()
	require.Eventually(t, func() bool { return l.reason() == v1.ReasonCreated }, soon, tick)
	after, _ := l.events("")
	t.Logf("before %d, during %d, after %d", before, during, after)
	require.LessOrEqual(t, after-before, 20)
	l.deleted()
}

func TestANewRunKeepsTheUIDAndCostsFewEvents(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	first := l.runID()
	l.handOver(first)
	l.running()
	require.Equal(t, first, l.get().Metadata.UID, "the UID stays")
	n, byType := l.events("")
	t.Logf("the new run: %d events %v", n, byType)
	require.LessOrEqual(t, n, 16)
	l.deleted()
}

func TestDeleteIsNoticedWhileTheWatchBacksOff(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	begin := time.Now()
	l.deleted()
	whole, _ := l.events("")
	t.Logf("closed and replayed after %s; %d events in its life", time.Since(begin), whole)
	require.Less(t, time.Since(begin), l.timing.Steady.Poll/4, "it did not wait for the watch")
}

// dieAfterCreate makes the first Create act and never answer. The activity ignores
// its context, as a dead process does.
func (l *lab) dieAfterCreate() (made, dead chan struct{}) {
	made, dead = make(chan struct{}, 9), make(chan struct{})
	l.backend.After(providers.OpCreate, func(context.Context) error {
		made <- struct{}{}
		<-dead
		return errors.New("dead")
	})
	return made, dead
}
