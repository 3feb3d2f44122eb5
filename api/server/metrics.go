package server

import (
	"maps"
	"math"
	"slices"
	"time"

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
	shown := shownOf(proxies)
	counts := map[standing]int{}
	for _, p := range proxies {
		counts[standing{phase: string(p.Status.Phase), provider: shown(p), reason: reasonOf(p)}]++
	}
	return counts
}

// shownOf returns what the provider of each of these Proxies is called as a label.
func shownOf(proxies []v1.Proxy) func(v1.Proxy) string {
	names := map[string]bool{}
	for _, p := range proxies {
		names[p.Spec.Provider] = true
	}
	sorted := slices.Sorted(maps.Keys(names))
	sorted = sorted[:min(len(sorted), shownProviders)]
	return func(p v1.Proxy) string {
		if _, found := slices.BinarySearch(sorted, p.Spec.Provider); !found {
			return otherProviders
		}
		return p.Spec.Provider
	}
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

// stuck counts the Proxies of each provider that are being deleted for longer than they
// may, at a time, whatever the reason. One that has Proxies and none like that has 0.
func stuck(proxies []v1.Proxy, at time.Time) map[string]int {
	shown := shownOf(proxies)
	counts := map[string]int{}
	for _, p := range proxies {
		provider := shown(p)
		counts[provider] += 0
		if p.Status.Phase == v1.PhaseDeleting && at.Sub(p.Status.Since) > p.Spec.Deadlines.Delete.Or(v1.DefaultDelete) {
			counts[provider]++
		}
	}
	return counts
}

var (
	stuckDesc = prometheus.NewDesc("egressfleet_proxies_stuck_deleting",
		"Proxies of a provider that are being deleted for longer than their deadline, as the list of discovery has them.",
		[]string{"provider"}, nil)
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
	out <- stuckDesc
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
	for provider, n := range stuck(last.proxies, s.clock.Now()) {
		out <- prometheus.MustNewConstMetric(stuckDesc, prometheus.GaugeValue, float64(n), provider)
	}
}
