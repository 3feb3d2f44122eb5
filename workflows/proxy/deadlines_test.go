package proxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func TestTheDeadlineOfAState(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	began, ran := noon.Add(-hour), noon.Add(-hour/2)
	tests := map[string]struct {
		state State
		want  deadline
	}{
		"nothing was made yet": {State{}, deadline{}},
		"being made": {
			State{Began: began}, deadline{deadlineProvisioning, defaultProvisioning, began.Add(30 * time.Minute)},
		},
		"being made, its own": {
			State{Began: began, Spec: v1.ProxySpec{Deadlines: v1.Deadlines{Provisioning: "2h"}}},
			deadline{deadlineProvisioning, 2 * hour, began.Add(2 * hour)},
		},
		"runs": {
			State{Began: began, RanAt: ran},
			deadline{deadlineFirstHealthy, defaultFirstHealthy, ran.Add(15 * time.Minute)},
		},
		"runs and was healthy": {State{Began: began, RanAt: ran, EverHealthy: true}, deadline{}},
		"runs and is not probed": {
			State{Began: began, RanAt: ran, Spec: v1.ProxySpec{HealthCheck: v1.HealthCheck{Disabled: true}}}, deadline{},
		},
		"being removed": {
			State{Began: began, RanAt: ran, Deleting: true, Spec: v1.ProxySpec{Deadlines: v1.Deadlines{Delete: "5m"}}},
			deadline{deadlineDelete, 5 * time.Minute, began.Add(5 * time.Minute)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, tc.state.deadline()) })
	}
}

// impatient lets rounds come often. In this environment no time passes for an activity,
// so a watch does not end when a deadline passes; on a real server it does.
func (sc *scene) impatient() *scene {
	sc.timing = sc.timing.WithSteadyPoll(2 * time.Minute)
	sc.timing.Steady.Lease, sc.timing.Retry.Lease, sc.timing.Busy.Lease = time.Minute, time.Minute, time.Minute
	return sc
}

// told counts the lines of a reason in the timeline.
func (sc *scene) told(reason string) (n int) {
	sc.t.Helper()
	for _, ev := range sc.timeline() {
		if ev.Reason == reason {
			n++
		}
	}
	return n
}

func TestAProxyThatIsNeverHealthySaysSoOnTime(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict func(*scene)
		status  v1.ConditionStatus
		reason  string
	}{
		"nobody has looked": {func(*scene) {}, v1.ConditionUnknown, v1.ReasonNotProbed},
		"it was refused": {
			func(sc *scene) {
				sc.SignalWorkflow(SignalHealth, HealthReport{Reason: v1.ReasonRefused, Message: "403"})
			},
			v1.ConditionFalse, v1.ReasonRefused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t).impatient()
			sc.spec.Deadlines.FirstHealthy = "10m"
			sc.at(time.Minute, func() { tc.verdict(sc) })
			sc.at(9*time.Minute, func() { require.Zero(t, sc.told("FirstHealthyTimeout")) })
			sc.at(20*time.Minute, func() {
				c := sc.condition(v1.ConditionHealthy)
				require.Equal(t, tc.status, c.Status)
				require.Equal(t, tc.reason, c.Reason)
				require.Contains(t, c.Message, "past deadlines.firstHealthy of 10m0s")
				require.Equal(t, v1.PhaseRunning, sc.status().Phase, "it stops no work")
			})
			sc.at(time.Hour, func() {
				require.Equal(t, 1, sc.told("FirstHealthyTimeout"))
				sc.SignalWorkflow(SignalHealth, HealthReport{Healthy: true, Reason: v1.ReasonHealthy})
			})
			sc.at(2*time.Hour, func() { require.Empty(t, sc.condition(v1.ConditionHealthy).Message) })
			sc.deleteAt(3 * time.Hour)
			sc.runs()
			require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
		})
	}
}

func TestOneThatWasHealthyInTimeIsNotLate(t *testing.T) {
	sc := newScene(t).impatient()
	sc.at(time.Minute, func() {
		sc.SignalWorkflow(SignalHealth, HealthReport{Healthy: true, Reason: v1.ReasonHealthy})
	})
	sc.at(2*time.Minute, func() { sc.SignalWorkflow(SignalHealth, HealthReport{Reason: v1.ReasonNoEgress}) })
	sc.at(2*time.Hour, func() {
		require.Zero(t, sc.told("FirstHealthyTimeout"))
		require.NotContains(t, sc.condition(v1.ConditionHealthy).Message, "deadlines")
	})
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

func TestACreateThatFailsBeyondItsDeadlineSaysBoth(t *testing.T) {
	sc := newScene(t).impatient()
	sc.spec.Deadlines.Provisioning = "20m"
	sc.backend.Before(providers.OpCreate, fake.FailingWith(providers.ErrQuotaExceeded, "IN_USE_ADDRESSES"))
	sc.at(time.Hour, func() {
		c := sc.condition(v1.ConditionProvisioned)
		require.Equal(t, v1.ReasonQuotaExceeded, c.Reason, "what can be done about it")
		require.Contains(t, c.Message, "IN_USE_ADDRESSES")
		require.Contains(t, c.Message, "past deadlines.provisioning of 20m0s")
		require.Equal(t, 1, sc.told(v1.ReasonProvisioningTimeout))
		sc.backend.Heal()
	})
	sc.at(2*time.Hour, func() { require.NotContains(t, sc.condition(v1.ConditionProvisioned).Message, "deadlines") })
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

// The watch of an outage lasts for hours; the deadline does not wait for its end.
func TestADeleteIsStuckAlsoDuringAnOutage(t *testing.T) {
	sc := newScene(t, fake.WithSlowDelete()).impatient()
	sc.spec.Deadlines.Delete = "10m"
	sc.deleteAt(time.Minute)
	sc.at(2*time.Minute, func() { sc.backend.Break(providers.ErrTransient) })
	sc.at(30*time.Minute, func() {
		c := sc.condition(v1.ConditionDeleting)
		require.Equal(t, v1.ReasonTransientError, c.Reason)
		require.Contains(t, c.Message, "past deadlines.delete of 10m0s")
		require.Equal(t, 1, sc.told(v1.ReasonStuckDeleting))
	})
	sc.at(2*time.Hour, func() { sc.backend.Heal(); sc.backend.FinishDeletes() })
	sc.runs()
}

// No watch runs while a proxy waits for something else: a clock tells of the deadline.
func TestADeadlinePassesAlsoWhileAProxyWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*scene)
		told    string
		creates int
	}{
		"latched": {
			func(sc *scene) { sc.backend.Before(providers.OpCreate, fake.Failing(providers.ErrPermanent)) },
			v1.ReasonProvisioningTimeout, 1,
		},
		"with a provider that nobody knows": {
			func(sc *scene) { sc.configured = false }, v1.ReasonProvisioningTimeout, 0,
		},
		"with a verdict that came late": {
			func(sc *scene) {
				sc.at(time.Second, func() {
					sc.SignalWorkflow(SignalHealth, HealthReport{Undecided: true, Reason: v1.ReasonNoTarget})
				})
				sc.at(5*time.Minute, func() { sc.tell(UpdateRetry, "look", Why{}) }) // a watch without a deadline begins
				sc.at(20*time.Minute, func() { sc.SignalWorkflow(SignalHealth, HealthReport{Reason: v1.ReasonRefused}) })
			},
			"FirstHealthyTimeout", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.spec.Deadlines = v1.Deadlines{Provisioning: "10m", FirstHealthy: "40m"}
			tc.prepare(sc)
			sc.at(50*time.Minute, func() {
				require.Equal(t, 1, sc.told(tc.told))
				require.Equal(t, tc.creates, sc.backend.Calls(providers.OpCreate), "it is no round")
			})
			sc.at(10*time.Hour, func() { require.Equal(t, 1, sc.told(tc.told), "it is told once") })
			sc.deleteAt(11 * time.Hour)
			sc.runs()
		})
	}
}
