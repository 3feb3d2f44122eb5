package discovery

import (
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Health is which proxies are wanted by what probes say of them.
type Health string

// The choices of ?healthy=.
const (
	HealthyOnly   Health = "true" // also those that no probe has looked at yet
	UnhealthyOnly Health = "false"
	HealthAny     Health = "any"
)

// Healths are every choice.
func Healths() []Health { return []Health{HealthyOnly, UnhealthyOnly, HealthAny} }

// Filter is which part of the list is wanted. The zero value wants what clients may use.
type Filter struct {
	Namespace, Provider, Region, Zone string          // empty: any
	Labels                            labels.Selector // nil: any
	Health                            Health          // empty: HealthyOnly
}

// Keeps reports whether a proxy is wanted.
func (f Filter) Keeps(e v1.Endpoint) bool {
	for _, is := range []struct{ wanted, found string }{
		{f.Namespace, e.Namespace}, {f.Provider, e.Provider}, {f.Region, e.Region}, {f.Zone, e.Zone},
	} {
		if is.wanted != "" && is.wanted != is.found {
			return false
		}
	}
	return f.healthy(e) && (f.Labels == nil || f.Labels.Matches(labels.Set(e.Labels)))
}

func (f Filter) healthy(e v1.Endpoint) bool {
	switch f.Health {
	case HealthAny:
		return true
	case UnhealthyOnly:
		return !e.Healthy
	case HealthyOnly:
		return e.Healthy
	default:
		return e.Healthy
	}
}

// Part returns the proxies that keep wants, in their order; never nil.
func Part(all []v1.Endpoint, keep func(v1.Endpoint) bool) []v1.Endpoint {
	part := make([]v1.Endpoint, 0, len(all))
	for _, e := range all {
		if keep(e) {
			part = append(part, e)
		}
	}
	return part
}

// Shuffled returns the proxies in another order.
func Shuffled(all []v1.Endpoint) []v1.Endpoint {
	all = slices.Clone(all)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // any will do
	return all
}

// First returns at most n proxies; 0 is all.
func First(all []v1.Endpoint, n int) []v1.Endpoint {
	if n == 0 || n > len(all) {
		return all
	}
	return all[:n]
}
