package proxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
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
