package v1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestClientsUseWhatRunsAndNothingSpeaksAgainst(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, c := range map[string]struct {
		change func(*v1.Proxy)
		usable bool
	}{
		"a proxy that runs and was probed":     {func(*v1.Proxy) {}, true},
		"a proxy that was not probed yet":      {func(p *v1.Proxy) { p.Status.Healthy = nil }, true},
		"a proxy that failed its probe":        {func(p *v1.Proxy) { p.Status.Healthy = &no }, false},
		"a proxy that is held":                 {func(p *v1.Proxy) { p.Status.Held = true }, false},
		"a proxy without an address":           {func(p *v1.Proxy) { p.Status.IP = "" }, false},
		"a proxy that is not there yet":        {func(p *v1.Proxy) { p.Status.Phase = v1.PhasePending }, false},
		"a proxy that is being made":           {func(p *v1.Proxy) { p.Status.Phase = v1.PhaseProvisioning }, false},
		"a proxy that is being replaced":       {func(p *v1.Proxy) { p.Status.Phase = v1.PhaseReplacing }, false},
		"a proxy that is latched":              {func(p *v1.Proxy) { p.Status.Phase = v1.PhaseBlocked }, false},
		"a proxy that is being deleted":        {func(p *v1.Proxy) { p.Status.Phase = v1.PhaseDeleting }, false},
		"a proxy of which nothing is known":    {func(p *v1.Proxy) { p.Status = v1.ProxyStatus{} }, false},
		"a held proxy that passed its probe":   {func(p *v1.Proxy) { p.Status.Held, p.Status.Healthy = true, &yes }, false},
		"a proxy that runs but lost its probe": {func(p *v1.Proxy) { p.Status.Healthy, p.Status.Held = &no, true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := full()
			p.Status.Held = false
			c.change(&p)
			endpoint, usable := v1.EndpointOf(p)
			require.Equal(t, c.usable, usable)
			require.Equal(t, c.usable, endpoint.Healthy)
		})
	}
}

func TestAnEndpointInJSON(t *testing.T) {
	t.Parallel()
	p := full()
	p.Status.Held = false
	endpoint, _ := v1.EndpointOf(p)
	got, err := json.Marshal(v1.Discovery{
		Version: v1.DiscoveryVersion, GeneratedAt: at(4, 0, 0), Stale: true, Proxies: []v1.Endpoint{endpoint},
	})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"version": "v1", "generatedAt": "2026-01-02T04:00:00Z", "stale": true,
		"proxies": [{
			"namespace": "default", "name": "paris-1", "uid": "01f0c0de-0000-7000-8000-000000000001",
			"provider": "gcp", "region": "europe-west9", "zone": "europe-west9-a",
			"ip": "10.0.0.7", "port": 3128, "url": "http://10.0.0.7:3128", "egressIP": "203.0.113.7",
			"healthy": true, "labels": {"team": "crawlers", "example.com/pool": "b"}
		}]
	}`, string(got))
}

func TestTheURLOfAnIPv6AddressHasBrackets(t *testing.T) {
	t.Parallel()
	p := full()
	p.Status.IP = "fd00::7"
	endpoint, _ := v1.EndpointOf(p)
	require.Equal(t, "http://[fd00::7]:3128", endpoint.URL)
	require.Equal(t, "fd00::7", endpoint.IP)
}

func TestAnUnhealthyProxyLeavesWhenItIsReplaced(t *testing.T) {
	t.Parallel()
	since := at(5, 0, 0)
	for name, c := range map[string]struct {
		after  v1.Duration
		health v1.ConditionStatus
		want   time.Time
	}{
		"unhealthy, and replaced for that": {"15m", v1.ConditionFalse, since.Add(15 * time.Minute)},
		"unhealthy, and left as it is":     {"", v1.ConditionFalse, time.Time{}},
		"healthy":                          {"15m", v1.ConditionTrue, time.Time{}},
		"undecided":                        {"15m", v1.ConditionUnknown, time.Time{}},
	} {
		p := full()
		p.Spec.HealthCheck.ReplaceAfter = c.after
		p.Status.Conditions = []v1.Condition{{Type: v1.ConditionHealthy, Status: c.health, LastTransitionTime: since}}
		endpoint, _ := v1.ReachableOf(p)
		require.Equal(t, c.want, endpoint.LeaveAt, name)
	}
}
