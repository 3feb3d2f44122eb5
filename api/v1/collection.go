package v1

import "time"

// Collection is what the last collection of orphans that ended well came to, and when
// there is another one.
type Collection struct {
	EndedAt   time.Time // zero: none that ended well is kept
	BeganAt   time.Time // of the last one, however it ended; zero: none is known
	NextAt    time.Time // zero: none is planned
	Paused    bool
	Providers []Collected // by name
}

// Collected is what a collection saw and did at one provider.
type Collected struct {
	Provider                         string
	Listed, Living, Young            int
	Doubts, Orphans, Deleted, Failed int
	// Note says why the provider was skipped or refused; usually empty.
	Note string
}
