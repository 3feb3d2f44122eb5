package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// standingProxy is a Proxy of a provider in a phase, for a reason.
func standingProxy(name, provider string, phase v1.Phase, reason string) v1.Proxy {
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: "a", Name: name}, Spec: v1.ProxySpec{Provider: provider}}
	p.Status.Phase = phase
	if reason != "" {
		p.Status.Conditions = []v1.Condition{{Type: v1.ConditionProvisioned, Reason: reason}}
	}
	return p
}

func TestTheFleetIsCountedByWhereItStands(t *testing.T) {
	t.Parallel()
	got := server.Standings([]v1.Proxy{
		standingProxy("a", "gcp", v1.PhaseRunning, "Running"), standingProxy("b", "gcp", v1.PhaseRunning, "Running"),
		standingProxy("c", "gcp", v1.PhasePending, ""),
	})
	require.Equal(t, map[string]int{"Running gcp Running": 2, "Pending gcp Pending": 1}, got)
}

func TestProvidersThatASpecInventsAreCountedTogether(t *testing.T) {
	t.Parallel()
	var proxies []v1.Proxy
	for i := range 200 {
		proxies = append(proxies, standingProxy("a", fmt.Sprintf("p%03d", i), v1.PhaseBlocked, "ProviderNotConfigured"))
	}
	got := server.Standings(proxies)
	require.Len(t, got, 51)
	require.Equal(t, 150, got["Blocked (other) ProviderNotConfigured"])
}

func TestARemovalIsStuckPastItsDeadline(t *testing.T) {
	t.Parallel()
	now := time.Unix(100000, 0)
	since := func(name, provider string, phase v1.Phase, ago time.Duration) v1.Proxy {
		p := standingProxy(name, provider, phase, "")
		p.Status.Since = now.Add(-ago)
		return p
	}
	patient := since("a", "gcp", v1.PhaseDeleting, 2*time.Hour)
	patient.Spec.Deadlines.Delete = "3h"
	hasty := since("b", "gcp", v1.PhaseDeleting, 2*time.Second)
	hasty.Spec.Deadlines.Delete = "1s"
	require.Equal(t, map[string]int{"gcp": 2, "kvm": 0}, server.Stuck([]v1.Proxy{
		patient, hasty, since("c", "gcp", v1.PhaseDeleting, 31*time.Minute),
		since("d", "gcp", v1.PhaseDeleting, 29*time.Minute),
		since("e", "kvm", v1.PhaseBlocked, 9*time.Hour),
	}, now))
}

func TestAnOpenProxyIsCountedByItsCondition(t *testing.T) {
	t.Parallel()
	with := func(status v1.ConditionStatus) v1.Proxy {
		p := standingProxy("a", "gcp", v1.PhaseRunning, "")
		p.Status.Conditions = append(p.Status.Conditions, v1.Condition{Type: v1.ConditionOpenProxy, Status: status})
		return p
	}
	require.Equal(t, map[string]int{"gcp": 1}, server.Open([]v1.Proxy{
		with(v1.ConditionTrue), with(v1.ConditionFalse), with(v1.ConditionUnknown),
	}))
}

func TestWhatIsStuckAndWhatIsOpenAreFiguresOfTheirOwn(t *testing.T) {
	t.Parallel()
	stuck, open := standingProxy("a", "kvm", v1.PhaseDeleting, ""), standingProxy("b", "gcp", v1.PhaseRunning, "")
	open.Status.Conditions = []v1.Condition{{Type: v1.ConditionOpenProxy, Status: v1.ConditionTrue}}
	registry := prometheus.NewRegistry()
	s := server.New(newFleet(stuck, open), server.Options{Metrics: registry, Clock: newClock()})
	s.Refresh(t.Context())
	value := func(name string) map[string]float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		got := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if family.GetName() == name {
					got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
		return got
	}
	require.Equal(t, map[string]float64{"kvm": 1, "gcp": 0}, value("egressfleet_proxies_stuck_deleting"))
	require.Equal(t, map[string]float64{"kvm": 0, "gcp": 1}, value("egressfleet_proxies_open"))
}

func TestAListThatWasNeverLoadedIsOfNoAge(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	server.New(newFleet(), server.Options{Metrics: registry})
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(
		"# HELP egressfleet_discovery_snapshot_age_seconds How old the list is that discovery is served from; +Inf while "+
			"there is none.\n# TYPE egressfleet_discovery_snapshot_age_seconds gauge\n"+
			"egressfleet_discovery_snapshot_age_seconds +Inf\n")))
}
