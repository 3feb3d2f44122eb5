package probe

// leastMass is how many proxies failing at once are more than a coincidence. One alone
// is no mass, though it may be all that a provider has.
const leastMass = 2

// Tally counts what a round made of a provider's proxies. Serialised.
type Tally struct {
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Undecided int `json:"undecided,omitempty"` // blames nobody: counts for neither side
}

// Add counts a ruling by what the proxy is called after it: one lost try is no failure.
func (t *Tally) Add(r Ruling) {
	switch {
	case !r.Verdict.Passed() && !r.Verdict.Failed():
		t.Undecided++
	case r.Health == HealthUnhealthy:
		t.Failed++
	default:
		t.Passed++
	}
}

// Plus returns both together: a provider's batches are one round.
func (t Tally) Plus(other Tally) Tally {
	return Tally{
		Passed: t.Passed + other.Passed, Failed: t.Failed + other.Failed, Undecided: t.Undecided + other.Undecided,
	}
}

// BreakerOpen reports whether so many proxies of one provider fail at once that the
// fault is hardly theirs: more than half of those that something is known about.
// Nothing is replaced while it is open. Pure.
func (t Tally) BreakerOpen() bool {
	return t.Failed >= leastMass && 2*t.Failed > t.Passed+t.Failed
}
