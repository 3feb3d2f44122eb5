package proxy

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// The recorded hash of an old release is compared under its own version, so these
// may never change: a change would replace every fleet.
func TestGoldenSpecHashes(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]v1.ProxySpec{
		"v1:dbd604432527c9ea26869e4c2888244c": {Provider: "local", Port: 3128},
		"v1:afc270be51e4c2bcd41fe8a895bf9e75": {
			Provider: "gcp", Port: 8080, CloudInit: v1.CloudInit{Inline: "#cloud-config\n"},
			Placement: v1.Placement{Region: "r", Zone: "z", MachineType: "m", Image: "i"},
		},
	} {
		require.Equal(t, want, specHash(s, State{Spec: s}.userData()))
	}
}

func TestARecordedHashIsComparedUnderItsOwnVersion(t *testing.T) {
	t.Parallel()
	require.True(t, madeFrom(specHash(spec, ""), spec, ""))
	require.False(t, madeFrom(specHash(spec, ""), spec, "other"))
	require.False(t, madeFrom("", spec, ""), "nothing recorded stands for nothing")
	require.False(t, madeFrom("v0:1", spec, ""), "a version that nobody knows stands for nothing")
}

func TestInlineTextAndItsBase64AreTheSameUserData(t *testing.T) {
	t.Parallel()
	text := State{Spec: v1.ProxySpec{CloudInit: v1.CloudInit{Inline: "hello"}}}
	encoded := State{Spec: v1.ProxySpec{CloudInit: v1.CloudInit{InlineBase64: "aGVsbG8="}}}
	require.Equal(t, text.userData(), encoded.userData())
	require.Empty(t, State{}.userData())
}

func TestOnce(t *testing.T) {
	t.Parallel()
	var s State
	require.True(t, s.once("a"))
	require.False(t, s.once("a"))
	for range handledKept + 5 {
		s.once(rand.Text())
	}
	require.Len(t, s.Handled, handledKept)
}

func TestTheTimelineIsBounded(t *testing.T) {
	t.Parallel()
	var s State
	for range timelineKept + 5 {
		s.note(v1.Event{Detail: strings.Repeat("é", 1000)})
	}
	require.Len(t, s.Timeline, timelineKept)
	require.LessOrEqual(t, len(s.Timeline[0].Detail), detailKept+len("…"))
}

func TestPausesDoubleUpToTheirBound(t *testing.T) {
	t.Parallel()
	timing := DefaultTiming()
	require.Equal(t, 30*time.Second, timing.pause(paceRetry, 0))
	require.Equal(t, 30*time.Second, timing.pause(paceRetry, 1))
	require.Equal(t, time.Minute, timing.pause(paceRetry, 2))
	require.Equal(t, 5*time.Minute, timing.pause(paceRetry, 9))
	require.Equal(t, 5*time.Minute, timing.pause(paceQuota, 9))
}

func TestWhoWaitsForAnotherConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase     v1.Phase
		condition string
		reason    string
		latched   bool
	}{
		"blocked, whatever the reason": {v1.PhaseBlocked, v1.ConditionProvisioned, v1.ReasonForeignInstance, true},
		"blocked, no provider": {
			v1.PhaseBlocked, v1.ConditionProvisioned, v1.ReasonProviderNotConfigured, true,
		},
		"deleting without a provider":        {v1.PhaseDeleting, v1.ConditionDeleting, v1.ReasonProviderNotConfigured, true},
		"deleting against a permanent error": {v1.PhaseDeleting, v1.ConditionDeleting, v1.ReasonPermanentError, true},
		"deleting, full":                     {v1.PhaseDeleting, v1.ConditionDeleting, v1.ReasonQuotaExceeded, false},
		"deleting as it should":              {v1.PhaseDeleting, v1.ConditionDeleting, v1.ReasonInProgress, false},
		"running":                            {v1.PhaseRunning, v1.ConditionProvisioned, v1.ReasonCreated, false},
		"full":                               {v1.PhasePending, v1.ConditionProvisioned, v1.ReasonQuotaExceeded, false},
	} {
		s := State{Deleting: c.phase == v1.PhaseDeleting}
		s.Status.Phase = c.phase
		s.Status.SetCondition(noon, v1.Condition{Type: c.condition, Reason: c.reason})
		require.Equal(t, c.latched, s.latched(), name)
	}
}

func TestLatchedOnAsksForOneProvider(t *testing.T) {
	t.Parallel()
	all := "WorkflowType = 'Proxy' AND ExecutionStatus = 'Running' AND ProxyProvider = 'gcp' AND " +
		"(ProxyPhase = 'Blocked' OR (ProxyPhase = 'Deleting' AND ProxyReason IN ('ProviderNotConfigured', 'PermanentError')))"
	require.Equal(t, all, LatchedOn("gcp", ""))
	require.Equal(t, all+" AND ProxyReason = 'ProviderNotConfigured'", LatchedOn("gcp", v1.ReasonProviderNotConfigured))
}
