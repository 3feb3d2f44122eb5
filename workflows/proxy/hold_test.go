package proxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

func TestAHoldEndsByItself(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Minute, func() { sc.tell(UpdateHold, "hold", HoldInput{Reason: "banned by example.com", For: "1h"}) })
	sc.at(59*time.Minute, func() {
		require.True(t, sc.status().Held)
		c := sc.condition(v1.ConditionHeld)
		require.Equal(t, "HoldRequested", c.Reason)
		require.Contains(t, c.Message, "banned by example.com; until ")
	})
	sc.at(62*time.Minute, func() {
		require.False(t, sc.status().Held)
		require.Equal(t, 1, sc.told("Resumed"))
	})
	sc.deleteAt(3 * time.Hour)
	sc.runs()
	require.Equal(t, 1, sc.backend.Calls(providers.OpCreate))
}

func TestTheLastHoldCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		second HoldInput
		held   bool // two hours later
	}{
		"one without an end":         {HoldInput{}, true},
		"one that ends later":        {HoldInput{For: "24h"}, true},
		"one that ends earlier":      {HoldInput{For: "10m"}, false},
		"one that says it in a word": {HoldInput{Reason: "Banned"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.at(time.Minute, func() { sc.tell(UpdateHold, "first", HoldInput{For: "1h"}) })
			sc.at(2*time.Minute, func() { sc.tell(UpdateHold, "second", tc.second) })
			sc.at(2*time.Hour, func() {
				require.Equal(t, tc.held, sc.status().Held)
				if tc.second.Reason != "" {
					require.Equal(t, tc.second.Reason, sc.condition(v1.ConditionHeld).Reason)
				}
			})
			sc.deleteAt(3 * time.Hour)
			sc.runs()
		})
	}
}

func TestResumeEndsAHoldBeforeItsTime(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Minute, func() { sc.tell(UpdateHold, "hold", HoldInput{For: "1h"}) })
	sc.at(2*time.Minute, func() { sc.tell(UpdateResume, "resume", Why{}) })
	sc.at(3*time.Minute, func() { require.False(t, sc.status().Held) })
	sc.at(2*time.Hour, func() { require.Equal(t, 1, sc.told("Resumed"), "and its timer is gone") })
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

func TestAHoldOutlivesWhatHappensMeanwhile(t *testing.T) {
	sc := newScene(t)
	sc.at(time.Minute, func() { sc.tell(UpdateHold, "hold", HoldInput{For: "1h"}) })
	sc.at(30*time.Minute, func() { sc.tell(UpdateReplace, "replace", Why{}) })
	sc.at(50*time.Minute, func() { require.True(t, sc.status().Held) })
	sc.at(70*time.Minute, func() { require.False(t, sc.status().Held) })
	sc.deleteAt(3 * time.Hour)
	sc.runs()
}

func TestHoldsThatAreRefused(t *testing.T) {
	for name, in := range map[string]HoldInput{
		"no duration": {For: "soon"}, "negative": {For: "-1h"}, "too short": {For: "10ms"}, "too long": {For: "8761h"},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.at(time.Minute, func() { sc.UpdateWorkflow(UpdateHold, "m", rejected(t, "for: "), in) })
			sc.deleteAt(time.Hour)
			sc.runs()
		})
	}
}
