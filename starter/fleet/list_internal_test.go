package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestARunningProxySaysThatNobodyHasLookedFromOutside(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var p v1.Proxy
	p.Status.Phase, p.Status.Since = v1.PhaseRunning, since
	c, known := withOpenProxy(p).Status.Condition(v1.ConditionOpenProxy)
	require.True(t, known)
	require.Equal(t, v1.ConditionUnknown, c.Status)
	require.Equal(t, v1.ReasonNoSecondProber, c.Reason)
	require.Equal(t, since, c.LastTransitionTime)

	p.Status.Conditions = []v1.Condition{{Type: v1.ConditionOpenProxy, Status: v1.ConditionFalse, Reason: v1.ReasonClosed}}
	require.Equal(t, p, withOpenProxy(p), "what is known stays")
	p.Status.Conditions, p.Status.Phase = nil, v1.PhaseProvisioning
	require.Equal(t, p, withOpenProxy(p), "there is nothing to look at yet")
}
