package proxy

import (
	"time"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// What a branch of the workflow depends on is a constant: a worker's configuration
// would break replay.
const (
	// MaxRunAge bounds how long an idle proxy stays on the code it started with: at
	// twelve events a day the server would suggest a new run only after a year.
	MaxRunAge = 7 * 24 * time.Hour
	// deleteEvery is how soon a Delete is repeated while the instance is still there.
	deleteEvery = 2 * time.Minute

	// steadyPoll is the safety net: the drift sweep sees a loss within two minutes, with
	// one listing per provider instead of one call per proxy.
	steadyPoll = time.Hour

	// confirmAfter is how far apart two NotFounds are that are believed.
	confirmAfter = 4 * time.Second
	// settleFor is how long a backend may hide what it has just made.
	settleFor = time.Minute
	// stayed is how long an instance has to run before its loss is one of its own, and
	// not the next of a row.
	stayed = 10 * time.Minute
	// firstRemake is the pause before the third make in a row; it doubles up to
	// longestRemake. The second is made at once: one loss is no pattern.
	firstRemake   = 30 * time.Second
	longestRemake = 5 * time.Minute

	defaultProvisioning = 30 * time.Minute
	defaultFirstHealthy = 15 * time.Minute
	defaultDelete       = v1.DefaultDelete
)

// pace names why the entity waits; Timing says how long that is. Plans carry the
// name, so that decide knows no clock and its table reads as words.
type pace string

const (
	paceBusy    pace = "busy"    // an instance is being made or removed
	paceSteady  pace = "steady"  // it runs; the drift sweep is the quick eye
	paceConfirm pace = "confirm" // between a NotFound and believing it
	paceRetry   pace = "retry"   // the backend failed; it may be better soon
	paceQuota   pace = "quota"   // the backend is full, or refuses a delete
	paceProbe   pace = "probe"   // latched: look once in a while all the same
	paceRemake  pace = "remake"  // what was made did not stay
	paceSecret  pace = "secret"  // it runs, and the digest of its secret cannot be read
)

// summary says in the Web UI what a watch or a timer of this pace is for.
func (p pace) summary() string {
	switch p {
	case paceBusy:
		return "watch the instance come or go"
	case paceSteady:
		return "watch the running instance"
	case paceConfirm:
		return "wait before a NotFound is believed"
	case paceQuota:
		return "wait until the backend may have room"
	case paceProbe:
		return "latched: wait for a change, or look once an hour"
	case paceRemake:
		return "wait before another instance is made: the last ones did not stay"
	case paceSecret:
		return "watch the running instance until its secret is read again"
	case paceRetry:
	}
	return "wait until the backend may answer"
}

// Pace is how often to look, what that doubles up to, and for how long before
// reporting anyway.
type Pace struct{ Poll, Max, Lease time.Duration }

// Timing holds the waits of the entity. Workers may differ in it: no branch depends
// on a duration here, so histories replay under another. No poll may be 0: a timer
// of 0 is no event.
type Timing struct {
	Busy, Steady, Confirm, Retry, Quota, Probe, Remake, Secret Pace

	Create activities.Limits // one create, which may block while it reports progress
	Call   activities.Limits // any other provider call
	// Prepare is one Prepare, which goes on as long as it reports progress.
	Prepare activities.Limits
	Look    activities.Limits // one attempt of a watch
	// Outlast is how long such an attempt repeats a Transient look; below Look.Attempt.
	Outlast time.Duration
	// Looks bounds the attempts of a watch; 0 is no bound.
	Looks int32
}

// DefaultTiming is what production runs with.
func DefaultTiming() Timing {
	const lease = 12 * time.Hour
	return Timing{
		Busy:    Pace{10 * time.Second, 10 * time.Second, 2 * time.Minute},
		Steady:  Pace{steadyPoll, steadyPoll, lease},
		Confirm: Pace{5 * time.Second, 5 * time.Second, 0},
		Retry:   Pace{30 * time.Second, 5 * time.Minute, lease},
		Quota:   Pace{5 * time.Minute, 5 * time.Minute, lease},
		Probe:   Pace{time.Hour, time.Hour, lease},
		Remake:  Pace{firstRemake, longestRemake, 0},
		Secret:  Pace{time.Minute, time.Minute, 5 * time.Minute},
		Create:  activities.Limits{Attempt: 6 * time.Minute, Total: 9 * time.Minute},
		Call:    activities.Limits{Attempt: 30 * time.Second, Total: 3 * time.Minute},
		Prepare: activities.Limits{Attempt: 6 * time.Hour, Total: 24 * time.Hour},
		Look:    activities.Limits{Attempt: 2 * time.Minute, Total: 2 * time.Minute},
		Outlast: time.Minute,
	}
}

// WithSteadyPoll returns the timing with another look at running instances.
func (t Timing) WithSteadyPoll(d time.Duration) Timing {
	t.Steady.Poll, t.Steady.Max = d, d
	return t
}

func (t Timing) of(p pace) Pace {
	switch p {
	case paceBusy:
		return t.Busy
	case paceSteady:
		return t.Steady
	case paceConfirm:
		return t.Confirm
	case paceRetry:
		return t.Retry
	case paceQuota:
		return t.Quota
	case paceProbe:
		return t.Probe
	case paceRemake:
		return t.Remake
	case paceSecret:
		return t.Secret
	default:
		return t.Retry
	}
}

// pause is how long a timer of a pace runs the n-th time in a row.
func (t Timing) pause(p pace, n int) time.Duration { return doubled(t.of(p).Poll, t.of(p).Max, n) }

// doubled is first the first time, and twice as much each time after, up to most.
func doubled(first, most time.Duration, n int) time.Duration {
	for ; n > 1 && first < most; n-- {
		first = min(2*first, most)
	}
	return first
}

// watchLimits lets a watch outlive its lease by its jitter and a last look.
func (t Timing) watchLimits(p Pace) activities.Limits {
	return activities.Limits{Attempt: t.Look.Attempt, Total: 2*p.Lease + 2*p.Max + t.Look.Total}
}
