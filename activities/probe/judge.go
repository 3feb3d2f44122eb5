package probe

import "time"

// Health is what a proxy is called.
type Health string

// What a proxy may be called. Serialised.
const (
	HealthUnknown   Health = "" // never probed: not called healthy, and not unhealthy
	HealthHealthy   Health = "healthy"
	HealthUnhealthy Health = "unhealthy"
)

// Thresholds say how many tries in a row it takes to change what a proxy is called.
// All of them are in one round, so nothing has to be counted between rounds.
type Thresholds struct {
	Fall  int           // failures after which a healthy proxy is unhealthy
	Rise  int           // passes after which an unhealthy proxy is healthy
	Pause time.Duration // between two tries
}

// DefaultThresholds: one lost packet takes no proxy out, and one lucky try brings none
// back.
func DefaultThresholds() Thresholds { return Thresholds{Fall: 3, Rise: 2, Pause: 5 * time.Second} }

// Ruling is what the tries of a round lead to. Serialised.
type Ruling struct {
	Health  Health  `json:"health"`            // what the proxy is called now
	Changed bool    `json:"changed,omitempty"` // it was called something else before
	Verdict Verdict `json:"verdict"`           // of the last try
	Tries   int     `json:"tries"`
	Failed  int     `json:"failed,omitempty"` // tries that failed: flapping, where the proxy is healthy
	// TargetDown says of an unhealthy proxy that its target could not be reached directly
	// either. What it says about itself stands, and nothing is replaced for it meanwhile.
	TargetDown bool `json:"targetDown,omitempty"`
}

// Judge says what the tries of a round, the first one first, make of a proxy that was
// called before; again: one more try decides. A proxy that was never probed is called
// by its first try: what never worked is not handed out. A try that blames nobody ends
// the round and changes nothing. Pure.
func Judge(before Health, tries []Verdict, t Thresholds) (r Ruling, again bool) {
	r = Ruling{Health: before, Tries: len(tries)}
	passes, fails := 0, 0 // in a row
	for _, v := range tries {
		r.Verdict = v
		switch {
		case v.Passed():
			passes, fails = passes+1, 0
		case v.Failed():
			passes, fails = 0, fails+1
			r.Failed++
		default:
			return r, false
		}
	}
	switch {
	case len(tries) == 0:
		return r, true
	case passes >= needed(before == HealthUnhealthy, t.Rise):
		r.Health = HealthHealthy
	case fails >= needed(before == HealthHealthy, t.Fall):
		r.Health = HealthUnhealthy
	default:
		return r, true
	}
	r.Changed = r.Health != before
	return r, false
}

// needed is the threshold where the try speaks against what the proxy is called, and
// one where it agrees.
func needed(against bool, threshold int) int {
	if against {
		return max(threshold, 1)
	}
	return 1
}
