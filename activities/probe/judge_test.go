package probe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

var (
	passed   = probe.Verdict{Reason: v1.ReasonHealthy}
	failed   = probe.Verdict{Reason: v1.ReasonNoEgress, Cause: probe.CauseTunnelClosed}
	refused  = probe.Verdict{Reason: v1.ReasonRefused, Cause: probe.CauseDenied}
	doubt    = probe.Verdict{Reason: v1.ReasonInconclusive, Cause: probe.CauseOurs}
	noTarget = probe.Verdict{Reason: v1.ReasonNoTarget, Cause: probe.CauseNoTarget}
)

func TestJudge(t *testing.T) {
	t.Parallel()
	type seen []probe.Verdict
	const unknown, healthy, ill = probe.HealthUnknown, probe.HealthHealthy, probe.HealthUnhealthy
	for name, c := range map[string]struct {
		before probe.Health
		tries  seen
		after  probe.Health
		again  bool
		last   probe.Verdict
	}{
		"nothing was tried yet":                   {healthy, nil, healthy, true, probe.Verdict{}},
		"a healthy one that passes":               {healthy, seen{passed}, healthy, false, passed},
		"a healthy one that fails is tried again": {healthy, seen{failed}, healthy, true, failed},
		"and again":                                      {healthy, seen{failed, failed}, healthy, true, failed},
		"a third failure makes it unhealthy":             {healthy, seen{failed, failed, failed}, ill, false, failed},
		"the reason is that of the last failure":         {healthy, seen{failed, failed, refused}, ill, false, refused},
		"one pass and it has stayed healthy":             {healthy, seen{failed, failed, passed}, healthy, false, passed},
		"an unhealthy one that fails is not tried again": {ill, seen{failed}, ill, false, failed},
		"one pass brings none back":                      {ill, seen{passed}, ill, true, passed},
		"two passes do":                                  {ill, seen{passed, passed}, healthy, false, passed},
		"a pass and a failure do not":                    {ill, seen{passed, failed}, ill, false, failed},
		"a new one that passes is healthy at once":       {unknown, seen{passed}, healthy, false, passed},
		"a new one that fails is unhealthy at once":      {unknown, seen{failed}, ill, false, failed},
		"an inconclusive try changes nothing":            {healthy, seen{doubt}, healthy, false, doubt},
		"nor after two failures":                         {healthy, seen{failed, failed, doubt}, healthy, false, doubt},
		"nor after a pass of an unhealthy one":           {ill, seen{passed, doubt}, ill, false, doubt},
		"nor of a new one":                               {unknown, seen{doubt}, unknown, false, doubt},
		"no target changes nothing":                      {healthy, seen{noTarget}, healthy, false, noTarget},
		"no target makes no unhealthy one healthy":       {ill, seen{noTarget}, ill, false, noTarget},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, again := probe.Judge(c.before, c.tries, probe.DefaultThresholds())
			require.Equal(t, c.again, again)
			require.Equal(t, c.after, r.Health)
			require.Equal(t, c.before != c.after, r.Changed)
			require.Equal(t, c.last, r.Verdict)
			require.Equal(t, len(c.tries), r.Tries)
		})
	}
}

func TestFlappingIsSeenThoughItChangesNothing(t *testing.T) {
	t.Parallel()
	r, _ := probe.Judge(probe.HealthHealthy, []probe.Verdict{failed, passed}, probe.DefaultThresholds())
	require.Equal(t, 1, r.Failed)
	require.False(t, r.Changed)
}

// Report 36: gardener/machine-controller-manager#760. An outage of a zone had every
// machine replaced.
func TestReport36AMassFailureOpensTheBreaker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tally probe.Tally
		open  bool
	}{
		"nobody":                                 {probe.Tally{}, false},
		"all of fifty":                           {probe.Tally{Failed: 50}, true},
		"half of fifty":                          {probe.Tally{Failed: 25, Passed: 25}, false},
		"one more than half":                     {probe.Tally{Failed: 26, Passed: 24}, true},
		"both of two":                            {probe.Tally{Failed: 2}, true},
		"one alone is no mass":                   {probe.Tally{Failed: 1}, false},
		"one of two":                             {probe.Tally{Failed: 1, Passed: 1}, false},
		"what nothing is known of does not vote": {probe.Tally{Failed: 4, Passed: 3, Undecided: 90}, true},
		"nothing is known of any":                {probe.Tally{Undecided: 50}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.open, c.tally.BreakerOpen())
		})
	}
}

func TestATallyCountsWhatProxiesAreCalled(t *testing.T) {
	t.Parallel()
	var a, b probe.Tally
	a.Add(probe.Ruling{Health: probe.HealthHealthy, Verdict: passed})
	a.Add(probe.Ruling{Health: probe.HealthUnhealthy, Verdict: failed})
	a.Add(probe.Ruling{Health: probe.HealthHealthy, Verdict: doubt})
	b.Add(probe.Ruling{Health: probe.HealthUnhealthy, Verdict: noTarget})
	b.Add(probe.Ruling{Health: probe.HealthUnhealthy, Verdict: refused})
	require.Equal(t, probe.Tally{Passed: 1, Failed: 2, Undecided: 2}, a.Plus(b))
}

func TestWhomAVerdictBlames(t *testing.T) {
	t.Parallel()
	for reason, blame := range map[string]probe.Blame{
		v1.ReasonHealthy: probe.BlameNobody, v1.ReasonInconclusive: probe.BlameNobody,
		v1.ReasonNoTarget: probe.BlameNobody, v1.ReasonNotProbed: probe.BlameNobody,
		v1.ReasonUnreachable: probe.BlameProxy, v1.ReasonBadResponse: probe.BlameProxy,
		v1.ReasonAuthRequired: probe.BlameConfiguration, v1.ReasonRefused: probe.BlameConfiguration,
		v1.ReasonTLSIntercepted: probe.BlameNetwork, v1.ReasonNoEgress: probe.BlameEgress,
	} {
		require.Equal(t, blame, probe.BlameOf(reason), reason)
	}
}
