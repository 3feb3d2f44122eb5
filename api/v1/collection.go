package v1

import "time"

// Collection is what the last collection of orphans came to, and when there is another one.
type Collection struct {
	EndedAt time.Time // of the last one that ended well; zero: none is kept
	BeganAt time.Time // of the last one, however it ended; zero: none is known
	NextAt  time.Time // zero: none is planned
	Paused  bool
	// FailedAt is when the last one failed, and Failure why; zero where none did since EndedAt.
	FailedAt time.Time
	Failure  string
	// Refused says that it failed on purpose: it found more than can be right, and deleted
	// nothing at the providers whose Note says so.
	Refused bool
	// Providers are of the last one that ended well or was refused, by name.
	Providers []Collected
}

// Collected is what a collection saw and did at one provider.
type Collected struct {
	Provider                         string
	Listed, Living, Young            int
	Doubts, Orphans, Deleted, Failed int
	// Note says why the provider was skipped or refused; usually empty.
	Note string
}
