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

// worries counts the Proxies of each provider that somebody has to look after. One that
// has Proxies and none like that has 0.
func worries(proxies []v1.Proxy, is func(v1.Proxy) bool) map[string]int {
	shown := shownOf(proxies)
	counts := map[string]int{}
	for _, p := range proxies {
		provider := shown(p)
		counts[provider] += 0
		if is(p) {
			counts[provider]++
		}
	}
	return counts
}

// stuckAt reports whether a Proxy is being deleted for longer than it may, whatever the
// reason.
func stuckAt(now time.Time) func(v1.Proxy) bool {
	return func(p v1.Proxy) bool {
		return p.Status.Phase == v1.PhaseDeleting && now.Sub(p.Status.Since) > p.Spec.Deadlines.Delete.Or(v1.DefaultDelete)
	}
}

// open reports whether a Proxy lets strangers in.
func open(p v1.Proxy) bool {
	c, _ := p.Status.Condition(v1.ConditionOpenProxy)
	return c.Status == v1.ConditionTrue
}

var (
	stuckDesc = prometheus.NewDesc("egressfleet_proxies_stuck_deleting",
		"Proxies of a provider that are being deleted for longer than their deadline, as the list of discovery has them.",
		[]string{"provider"}, nil)
	openDesc = prometheus.NewDesc("egressfleet_proxies_open",
		"Proxies of a provider that let strangers in, by their condition OpenProxy, as the list of discovery has them.",
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
	out <- openDesc
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
	for desc, is := range map[*prometheus.Desc]func(v1.Proxy) bool{stuckDesc: stuckAt(s.clock.Now()), openDesc: open} {
		for provider, n := range worries(last.proxies, is) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), provider)
		}
	}
}
