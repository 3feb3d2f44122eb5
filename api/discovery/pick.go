package discovery

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// How much of the traffic a proxy gets, beside one that probes found healthy.
const (
	weightHealthy   = 1.0
	weightUnprobed  = 0.25
	weightUnhealthy = 0.01 // only where somebody asked for those, too
)

func weight(e v1.Endpoint) float64 {
	switch {
	case !e.Healthy:
		return weightUnhealthy
	case e.Unprobed:
		return weightUnprobed
	default:
		return weightHealthy
	}
}

// Pick returns one proxy, or nil where there is none. The same key gets the same one as
// long as that is there: when proxies come or go, only the keys of those move (a
// weighted rendezvous hash: Schindelhauer and Schomaker 2005). Without a key it is
// drawn. One that is about to leave is never picked.
func Pick(all []v1.Endpoint, key string) *v1.Endpoint {
	best, score := -1, math.Inf(-1)
	for i, e := range all {
		if !e.LeaveAt.IsZero() {
			continue
		}
		chance := rand.Float64() //nolint:gosec // any will do
		if key != "" {
			chance = chanceOf(key, e.Namespace+"/"+e.Name)
		}
		// The highest of ln(chance)/weight is a draw by weight.
		if s := math.Log(chance) / weight(e); best < 0 || s > score {
			best, score = i, s
		}
	}
	if best < 0 {
		return nil
	}
	picked := all[best]
	return &picked
}

// chanceOf is a number within 0 and 1 that depends on nothing but its two texts. It is
// the name that counts, not the instance: a replaced proxy keeps its keys.
func chanceOf(key, name string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(name))
	return (float64(mixed(h.Sum64())>>11) + 0.5) / (1 << 53)
}

// mixed spreads what FNV leaves close together (the finalizer of SplitMix64).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
