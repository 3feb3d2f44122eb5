package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

const someImage = "image debian-12 on host-a"

// fetching is a scene whose backend has no image, and takes hours to fetch it.
type fetching struct {
	*scene
	began          time.Time
	fetches, ended int
}

func newFetching(t *testing.T) *fetching {
	t.Helper()
	f := &fetching{scene: newScene(t)}
	f.at(0, func() { f.began = f.Now() })
	f.backend.Unprepare(someImage)
	f.OnActivity("PrepareInstance", mock.Anything, mock.Anything).After(10 * time.Hour).Return(nil)
	f.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == "PrepareInstance" {
			f.fetches++
		}
	})
	f.SetOnActivityCanceledListener(func(info *activity.Info) {
		if info.ActivityType.Name == "PrepareInstance" {
			f.ended++
		}
	})
	return f
}

func TestAProxyIsMadeOnceWhatItNeedsIsFetched(t *testing.T) {
	sc := newScene(t)
	sc.backend.Unprepare(someImage)
	var attempts []int
	sc.at(time.Minute, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		for _, req := range sc.backend.Requests() {
			attempts = append(attempts, req.Attempt)
		}
		var told []string
		for _, event := range sc.timeline() {
			told = append(told, event.Reason+": "+event.Detail)
		}
		require.Contains(t, told[0], someImage+" is being fetched")
	})
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Equal(t, 2, sc.backend.Calls(providers.OpCreate))
	require.Equal(t, 1, sc.backend.Calls(providers.OpPrepare))
	require.Equal(t, []int{1, 1}, attempts, "a create that made nothing is no attempt of its own")
}

func TestAProxyThatLacksNothingIsNotPrepared(t *testing.T) {
	sc := newScene(t)
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Zero(t, sc.backend.Calls(providers.OpPrepare))
}

func TestMessagesAreHeardDuringAFetch(t *testing.T) {
	for name, c := range map[string]struct {
		ask     func(*fetching)
		fetches int // begun two minutes later
	}{
		"hold":    {func(f *fetching) { f.tell(UpdateHold, "hold", HoldInput{Reason: "billing"}) }, 1},
		"a hint":  {func(f *fetching) { f.SignalWorkflow(SignalHint, Hint{Reason: "drift"}) }, 1},
		"a retry": {func(f *fetching) { f.tell(UpdateRetry, "retry", Why{}) }, 2},
		"another spec": {func(f *fetching) {
			other := f.spec
			other.Port = 3129
			f.tell(UpdateApply, "apply", ApplyInput{Spec: other})
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetching(t)
			f.at(time.Minute, func() {
				status := f.status()
				require.Equal(t, v1.PhaseProvisioning, status.Phase)
				provisioned := f.condition(v1.ConditionProvisioned)
				require.Equal(t, v1.ReasonProvisioning, provisioned.Reason)
				require.Contains(t, provisioned.Message, someImage+" is being fetched")
				c.ask(f)
			})
			f.at(2*time.Minute, func() {
				require.Equal(t, name == "hold", f.status().Held)
				require.Equal(t, c.fetches, f.fetches)
				require.Equal(t, c.fetches-1, f.ended, "one fetch at a time")
			})
			f.deleteAt(3 * time.Minute)
			f.runs()
			require.WithinDuration(t, f.began.Add(3*time.Minute), f.Now(), 10*time.Second, "a delete waits for no fetch")
			require.Zero(t, f.backend.Calls(providers.OpDelete), "nothing was made")
			require.Zero(t, f.backend.Calls(providers.OpList), "and nobody has to look for it")
		})
	}
}

func TestAFetchThatIsLeftLeavesNothingBehind(t *testing.T) {
	f := newFetching(t)
	f.at(time.Minute, func() {
		f.tell(UpdateDelete, "delete", DeleteInput{SkipCleanup: true, Reason: "the host is gone"})
	})
	f.runs()
	var result Result
	require.NoError(t, f.GetWorkflowResult(&result))
	require.Zero(t, result)
}

func TestAFetchCountsForTheProvisioningDeadline(t *testing.T) {
	f := newFetching(t)
	f.at(31*time.Minute, func() {
		require.Contains(t, f.condition(v1.ConditionProvisioned).Message, "past deadlines.provisioning of 30m")
		require.Equal(t, 1, f.fetches, "it stops no work")
	})
	f.deleteAt(time.Hour)
	f.runs()
}

// TestAFetchThatFailsIsAFailureOfTheCreate has every class once.
func TestAFetchThatFailsIsAFailureOfTheCreate(t *testing.T) {
	for class, c := range map[providers.Class]struct {
		phase  v1.Phase
		reason string
		again  time.Duration
	}{
		providers.ErrPermanent:     {v1.PhaseBlocked, v1.ReasonPermanentError, time.Hour},
		providers.ErrQuotaExceeded: {v1.PhasePending, v1.ReasonQuotaExceeded, 5 * time.Minute},
		providers.ErrTransient:     {v1.PhasePending, v1.ReasonTransientError, 30 * time.Second},
	} {
		t.Run(string(class), func(t *testing.T) {
			sc := newScene(t)
			sc.backend.Unprepare(someImage)
			failed := temporal.NewNonRetryableApplicationError("checksum", string(class), nil)
			fetch := sc.OnActivity("PrepareInstance", mock.Anything, mock.Anything).Return(failed).Once()
			sc.OnActivity("PrepareInstance", mock.Anything, mock.Anything).After(time.Second).Return(nil).NotBefore(fetch)
			sc.at(10*time.Second, func() {
				status := sc.status()
				require.Equal(t, c.phase, status.Phase)
				provisioned := sc.condition(v1.ConditionProvisioned)
				require.Equal(t, c.reason, provisioned.Reason)
				require.Contains(t, provisioned.Message, "checksum")
				require.WithinDuration(t, sc.Now().Add(c.again), status.NextAttemptAt, 11*time.Second)
			})
			sc.at(c.again+30*time.Second, func() {
				require.Contains(t, sc.condition(v1.ConditionProvisioned).Message, "is being fetched")
			})
			sc.deleteAt(c.again + time.Minute)
			sc.runs()
		})
	}
}

// TestARunOfBeforeNeverPrepares pins the version before: its histories know no Prepare.
func TestARunOfBeforeNeverPrepares(t *testing.T) {
	f := newFetching(t)
	f.OnGetVersion(changeRound, workflow.Version(versionFirst), workflow.Version(versionNewest)).
		Return(workflow.Version(versionShown))
	f.at(time.Minute, func() {
		provisioned := f.condition(v1.ConditionProvisioned)
		require.Equal(t, v1.ReasonNotPrepared, provisioned.Reason)
		require.Contains(t, provisioned.Message, someImage)
	})
	f.deleteAt(time.Hour)
	f.runs()
	require.Zero(t, f.fetches)
}
