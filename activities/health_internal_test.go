package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// shows is a proxy that shows a verdict; an empty reason for none.
func shows(healthy *bool, status v1.ConditionStatus, reason string, since time.Time) v1.Proxy {
	p := v1.Proxy{Spec: v1.ProxySpec{HealthCheck: v1.HealthCheck{ReplaceAfter: "10m"}}}
	p.Status.Healthy, p.Status.EgressIP = healthy, "203.0.113.1"
	if reason != "" {
		p.Status.SetCondition(since, v1.Condition{Type: v1.ConditionHealthy, Status: status, Reason: reason})
	}
	return p
}

var (
	yes, no  = true, false
	probedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	longAgo  = probedAt.Add(-time.Hour)
)

func ruled(health probe.Health, changed bool, reason string) probe.Ruling {
	return probe.Ruling{Health: health, Changed: changed, Verdict: probe.Verdict{Reason: reason, EgressIP: "203.0.113.1"}}
}

func TestWhatAProxyIsTold(t *testing.T) {
	t.Parallel()
	unprobed := shows(nil, v1.ConditionUnknown, v1.ReasonNotProbed, longAgo)
	healthy := shows(&yes, v1.ConditionTrue, v1.ReasonHealthy, longAgo)
	unhealthy := shows(&no, v1.ConditionFalse, v1.ReasonUnreachable, longAgo)
	unaddressed := healthy
	unaddressed.Status.EgressIP = ""
	elsewhere := ruled(probe.HealthHealthy, false, v1.ReasonHealthy)
	elsewhere.Verdict.EgressIP = "203.0.113.2"
	tests := map[string]struct {
		proxy  v1.Proxy
		ruling probe.Ruling
		reason string // empty: nothing
	}{
		"its first pass":    {unprobed, ruled(probe.HealthHealthy, true, v1.ReasonHealthy), v1.ReasonHealthy},
		"its first failure": {unprobed, ruled(probe.HealthUnhealthy, true, v1.ReasonRefused), v1.ReasonRefused},
		"the same":          {healthy, ruled(probe.HealthHealthy, false, v1.ReasonHealthy), ""},
		"one lost try":      {healthy, ruled(probe.HealthHealthy, false, v1.ReasonUnreachable), ""},
		"that it fails": {
			healthy, ruled(probe.HealthUnhealthy, true, v1.ReasonUnreachable), v1.ReasonUnreachable,
		},
		"the same failure": {unhealthy, ruled(probe.HealthUnhealthy, false, v1.ReasonUnreachable), ""},
		"another failure": {
			unhealthy, ruled(probe.HealthUnhealthy, false, v1.ReasonAuthRequired), v1.ReasonAuthRequired,
		},
		"that it is back":          {unhealthy, ruled(probe.HealthHealthy, true, v1.ReasonHealthy), v1.ReasonHealthy},
		"the first egress address": {unaddressed, elsewhere, v1.ReasonHealthy},
		"no target":                {unprobed, ruled(probe.HealthUnknown, false, v1.ReasonNoTarget), v1.ReasonNoTarget},
		"the target is down":       {healthy, ruled(probe.HealthHealthy, false, v1.ReasonInconclusive), ""},
		"the target is down still": {unhealthy, ruled(probe.HealthUnhealthy, false, v1.ReasonInconclusive), ""},
		"no target, again": {
			shows(nil, v1.ConditionUnknown, v1.ReasonNoTarget, longAgo),
			ruled(probe.HealthUnknown, false, v1.ReasonNoTarget), "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, news := newsFor(tc.proxy, tc.ruling, probedAt)
			require.Equal(t, tc.reason != "", news)
			if !news {
				return
			}
			require.Equal(t, tc.reason, report.Reason)
			require.Equal(t, tc.reason == v1.ReasonHealthy, report.Healthy)
			require.Equal(t, tc.reason == v1.ReasonNoTarget, report.Undecided)
		})
	}
}

// Behind a pool of addresses there is another one in every round.
func TestAnotherEgressAddressIsToldOnceAnHour(t *testing.T) {
	t.Parallel()
	healthy := shows(&yes, v1.ConditionTrue, v1.ReasonHealthy, longAgo)
	elsewhere := ruled(probe.HealthHealthy, false, v1.ReasonHealthy)
	elsewhere.Verdict.EgressIP = "203.0.113.2"
	for _, uid := range []string{"a", "b", "c"} {
		healthy.Metadata.UID = uid
		told := 0
		for minute := range 60 {
			if _, news := newsFor(healthy, elsewhere, probedAt.Add(time.Duration(minute)*time.Minute)); news {
				told++
			}
		}
		require.Equal(t, 1, told)
	}
}

func TestWhatIsToBeReplaced(t *testing.T) {
	t.Parallel()
	fails := ruled(probe.HealthUnhealthy, false, v1.ReasonUnreachable)
	meanwhile := fails
	meanwhile.TargetDown = true
	is := func(change func(*v1.Proxy)) v1.Proxy {
		p := shows(&no, v1.ConditionFalse, v1.ReasonUnreachable, longAgo)
		change(&p)
		return p
	}
	tests := map[string]struct {
		proxy  v1.Proxy
		ruling probe.Ruling
		want   bool
	}{
		"fails for an hour": {is(func(*v1.Proxy) {}), fails, true},
		"fails, and nobody asked for it": {
			is(func(p *v1.Proxy) { p.Spec.HealthCheck.ReplaceAfter = "" }), fails, false,
		},
		"fails, not for long enough": {
			is(func(p *v1.Proxy) { p.Spec.HealthCheck.ReplaceAfter = "2h" }), fails, false,
		},
		"fails, and is held": {is(func(p *v1.Proxy) { p.Status.Held = true }), fails, false},
		"failed, and is back": {
			is(func(*v1.Proxy) {}), ruled(probe.HealthHealthy, true, v1.ReasonHealthy), false,
		},
		"failed, and the target is down": {
			is(func(*v1.Proxy) {}), ruled(probe.HealthUnhealthy, false, v1.ReasonInconclusive), false,
		},
		"was healthy until now":      {shows(&yes, v1.ConditionTrue, v1.ReasonHealthy, longAgo), fails, false},
		"was never looked at before": {shows(nil, v1.ConditionUnknown, v1.ReasonNotProbed, longAgo), fails, false},
		"has just been called unhealthy": {
			shows(&no, v1.ConditionFalse, v1.ReasonUnreachable, probedAt), fails, false,
		},
		"reached its limit to the second": {
			shows(&no, v1.ConditionFalse, v1.ReasonUnreachable, probedAt.Add(-10*time.Minute)), fails, true,
		},
		"fails, while the target is down": {is(func(*v1.Proxy) {}), meanwhile, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			since, overdue := overdueSince(tc.proxy, tc.ruling, probedAt)
			require.Equal(t, tc.want, overdue)
			require.False(t, overdue && since.IsZero())
		})
	}
}

func TestABatchThatEndsSoonBeatsNot(t *testing.T) {
	t.Parallel()
	now := probedAt
	var told []int
	tell := sparing(func() time.Time { return now }, func(done, _ int) { told = append(told, done) })
	for _, after := range []time.Duration{0, time.Second, beat - time.Millisecond, beat, missedBeats} {
		now = probedAt.Add(after)
		tell(int(after/time.Millisecond), 1)
	}
	require.Equal(t, []int{int(beat / time.Millisecond), int(missedBeats / time.Millisecond)}, told)
}
