package server

import (
	"maps"
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// shownProviders bounds the label provider: a spec may name anything. The rest, in the
// order of names, is "other".
const shownProviders = 50

// otherProviders is what the rest is called; a provider cannot be.
const otherProviders = "(other)"

// standing is where Proxies stand, as the labels of a gauge.
type standing struct{ phase, provider, reason string }

// standings counts Proxies by where they stand.
func standings(proxies []v1.Proxy) map[standing]int {
	names := map[string]bool{}
	for _, p := range proxies {
		names[p.Spec.Provider] = true
	}
	sorted := slices.Sorted(maps.Keys(names))
	shown := sorted[:min(len(sorted), shownProviders)]
	counts := map[standing]int{}
	for _, p := range proxies {
		s := standing{phase: string(p.Status.Phase), provider: p.Spec.Provider, reason: reasonOf(p)}
		if _, found := slices.BinarySearch(shown, s.provider); !found {
			s.provider = otherProviders
		}
		counts[s]++
	}
	return counts
}

// reasonOf says why a Proxy stands where it does; its phase until its workflow has said.
func reasonOf(p v1.Proxy) string {
	about := v1.ConditionProvisioned
	if p.Status.Phase == v1.PhaseDeleting {
		about = v1.ConditionDeleting
	}
	for _, c := range p.Status.Conditions {
		if c.Type == about {
			return c.Reason
		}
	}
	return string(p.Status.Phase)
}

var (
	proxiesDesc = prometheus.NewDesc("egressfleet_proxies",
		"Proxies by phase, provider and the reason of their condition Provisioned, or Deleting, as the list of discovery "+
			"has them.",
		[]string{"phase", "provider", "reason"}, nil)
	ageDesc = prometheus.NewDesc("egressfleet_discovery_snapshot_age_seconds",
		"How old the list is that discovery is served from; +Inf while there is none.", nil, nil)
)

// Describe names what Collect tells.
func (s *snapshot) Describe(out chan<- *prometheus.Desc) {
	out <- proxiesDesc
	out <- ageDesc
}

// Collect tells of the list as it is; nobody is asked.
func (s *snapshot) Collect(out chan<- prometheus.Metric) {
	last := s.last.Load()
	if last == nil {
		out <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, math.Inf(1))
		return
	}
	age := max(0, s.clock.Now().Sub(last.at))
	out <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, age.Seconds())
	for at, n := range last.standings {
		out <- prometheus.MustNewConstMetric(proxiesDesc, prometheus.GaugeValue, float64(n),
			at.phase, at.provider, at.reason)
	}
}
