package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

func TestAVerdictAboutTheInstanceBeforeIsNone(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Minute, func() {
		sc.SignalWorkflow(SignalHealth, HealthReport{Reason: v1.ReasonRefused, IP: "127.9.9.9"})
	})
	sc.at(2*time.Minute, func() {
		require.Nil(t, sc.status().Healthy)
		sc.SignalWorkflow(SignalHealth, HealthReport{Reason: v1.ReasonRefused, IP: sc.status().IP})
	})
	sc.at(3*time.Minute, func() { require.False(t, *sc.status().Healthy) })
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestWhatBlamesNobodyOnlyGivesAReason(t *testing.T) {
	sc := newScene(t)
	nothing := HealthReport{Undecided: true, Reason: v1.ReasonNoTarget, Message: "no target is configured"}
	sc.at(time.Minute, func() { sc.SignalWorkflow(SignalHealth, nothing) })
	sc.at(time.Hour, func() {
		c := sc.condition(v1.ConditionHealthy)
		require.Equal(t, v1.ConditionUnknown, c.Status)
		require.Equal(t, v1.ReasonNoTarget, c.Reason)
		require.Nil(t, sc.status().Healthy)
		require.Zero(t, sc.told("FirstHealthyTimeout"), "nobody is to blame")
		sc.SignalWorkflow(SignalHealth, HealthReport{Healthy: true, Reason: v1.ReasonHealthy})
	})
	sc.at(2*time.Hour, func() {
		sc.SignalWorkflow(SignalHealth, HealthReport{Undecided: true, Reason: v1.ReasonInconclusive})
	})
	sc.at(3*time.Hour, func() {
		require.True(t, *sc.status().Healthy, "what is known stays")
		sc.tell(UpdateReplace, "replace", Why{})
	})
	sc.at(4*time.Hour, func() { require.Equal(t, v1.ReasonNotProbed, sc.condition(v1.ConditionHealthy).Reason) })
	sc.deleteAt(5 * time.Hour)
	sc.runs()
}

func (sc *scene) openProxy() (c v1.Condition, known bool) {
	return sc.status().Condition(v1.ConditionOpenProxy)
}

// Report 47: scrapoxy/scrapoxy#21.
func TestReport47AnOpenProxySaysSo(t *testing.T) {
	sc := newScene(t)
	open := OpenProxyReport{Status: v1.ConditionTrue, Reason: v1.ReasonOpenProxy, Message: "granted"}
	sc.at(time.Minute, func() {
		elsewhere := open
		elsewhere.IP = "127.9.9.9"
		sc.SignalWorkflow(SignalOpenProxy, elsewhere)
	})
	sc.at(2*time.Minute, func() {
		_, known := sc.openProxy()
		require.False(t, known, "that was the instance before")
		open.IP = sc.status().IP
		sc.SignalWorkflow(SignalOpenProxy, open)
	})
	sc.at(3*time.Minute, func() {
		c := sc.condition(v1.ConditionOpenProxy)
		require.Equal(t, v1.ConditionTrue, c.Status)
		require.Equal(t, v1.ReasonOpenProxy, c.Reason)
		require.Equal(t, 1, sc.told(v1.ReasonOpenProxy))
		_, usable := v1.EndpointOf(v1.Proxy{Spec: sc.spec, Status: sc.status()})
		require.True(t, usable, "it is a danger for its owner, and works for its clients")
		sc.SignalWorkflow(SignalOpenProxy, open)
	})
	sc.at(4*time.Minute, func() {
		require.Equal(t, 1, sc.told(v1.ReasonOpenProxy), "told once")
		sc.tell(UpdateReplace, "replace", Why{})
	})
	sc.at(time.Hour, func() {
		_, known := sc.openProxy()
		require.False(t, known, "another instance may have other rules")
		sc.SignalWorkflow(SignalOpenProxy, OpenProxyReport{
			Status: "Perhaps", Reason: strings.Repeat("R", 2000), Message: strings.Repeat("m", 5000),
		})
	})
	sc.at(2*time.Hour, func() {
		c := sc.condition(v1.ConditionOpenProxy)
		require.Equal(t, v1.ConditionUnknown, c.Status, "a status that nobody knows")
		require.LessOrEqual(t, len(c.Reason), wordKept+len("…"))
		require.LessOrEqual(t, len(c.Message), textKept+len("…"))
	})
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

func TestARunOfBeforeKnowsNoOpenProxy(t *testing.T) {
	sc := newScene(t)
	sc.OnGetVersion(changeRound, workflow.Version(versionFirst), workflow.Version(versionNewest)).
		Return(workflow.Version(versionDeadlines))
	sc.at(time.Minute, func() {
		sc.SignalWorkflow(SignalOpenProxy, OpenProxyReport{Status: v1.ConditionTrue, Reason: v1.ReasonOpenProxy})
	})
	sc.at(2*time.Minute, func() {
		_, known := sc.openProxy()
		require.False(t, known, "its history may have been written by other code")
	})
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestAnotherReasonDoesNotBeginBadHealthAnew(t *testing.T) {
	sc := newScene(t)
	var since time.Time
	sc.at(time.Minute, func() { sc.SignalWorkflow(SignalHealth, HealthReport{Reason: v1.ReasonUnreachable}) })
	sc.at(2*time.Minute, func() { since = sc.condition(v1.ConditionHealthy).LastTransitionTime })
	sc.at(10*time.Minute, func() { sc.SignalWorkflow(SignalHealth, HealthReport{Reason: v1.ReasonBadResponse}) })
	sc.at(11*time.Minute, func() {
		c := sc.condition(v1.ConditionHealthy)
		require.Equal(t, v1.ReasonBadResponse, c.Reason)
		require.Equal(t, since, c.LastTransitionTime, "it has been unhealthy all the time")
		require.Zero(t, sc.told(v1.ReasonBadResponse), "a proxy that flaps does not fill its timeline")
	})
	sc.deleteAt(time.Hour)
	sc.runs()
}

func TestAReplacementOfWhatSomebodyLookedAt(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Minute, func() {
		seen := Subject{UID: testUID, CreatedAt: sc.status().InstanceCreatedAt}
		sc.UpdateWorkflow(UpdateReplace, "older", rejected(t, "another instance"), ReplaceInput{
			Of: Subject{UID: testUID, CreatedAt: seen.CreatedAt.Add(-time.Second)},
		})
		sc.UpdateWorkflow(UpdateReplace, "elsewhere", rejected(t, "another instance"), ReplaceInput{
			Of: Subject{UID: "another", CreatedAt: seen.CreatedAt},
		})
		sc.tell(UpdateReplace, "this", ReplaceInput{Of: seen})
	})
	sc.deleteAt(time.Hour)
	sc.runs()
	require.Equal(t, 2, sc.backend.Calls("create"))
}

func TestReplacementsByASweepAreSlowedDown(t *testing.T) {
	sc := newScene(t)
	for i := range 20 {
		sc.at(time.Duration(i)*3*time.Minute+time.Minute, func() {
			s := sc.status()
			if s.ProviderID == "" {
				return // it waits before another one is made
			}
			sc.tell(UpdateReplace, s.InstanceCreatedAt.String()+s.Since.String(), ReplaceInput{
				Of: Subject{UID: testUID, CreatedAt: s.InstanceCreatedAt},
			})
		})
	}
	sc.deleteAt(2 * time.Hour)
	sc.runs()
	require.Less(t, sc.backend.Calls("create"), 16)
	require.Greater(t, sc.backend.Calls("create"), 3, "slowed down, not stopped")
}

func TestALossAfterALongLifeIsNoMissedDeadline(t *testing.T) {
	sc := newScene(t)
	sc.at(2*time.Minute, func() {
		sc.SignalWorkflow(SignalHealth, HealthReport{Healthy: true, Reason: v1.ReasonHealthy})
	})
	sc.at(3*time.Hour, func() {
		sc.backend.Lose(sc.backend.Instances()[0].ID)
		sc.SignalWorkflow(SignalHint, Hint{})
	})
	sc.at(4*time.Hour, func() {
		require.Equal(t, v1.PhaseRunning, sc.status().Phase)
		require.Zero(t, sc.told(v1.ReasonProvisioningTimeout))
	})
	sc.deleteAt(5 * time.Hour)
	sc.runs()
}

func TestWhatHasRunAndComesUpAgainIsNotLate(t *testing.T) {
	sc := newScene(t)
	sc.at(3*time.Hour, func() {
		sc.backend.SetState(sc.backend.Instances()[0].ID, providers.StateProvisioning)
		sc.SignalWorkflow(SignalHint, Hint{})
	})
	sc.at(3*time.Hour+time.Minute, func() {
		require.Equal(t, v1.PhaseProvisioning, sc.status().Phase)
		require.Equal(t, v1.ReasonProvisioning, sc.condition(v1.ConditionProvisioned).Reason)
		sc.backend.Finish(sc.backend.Instances()[0].ID)
	})
	sc.deleteAt(4 * time.Hour)
	sc.runs()
}
