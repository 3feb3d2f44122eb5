package activities

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/providers"
)

// Priorities: with a backlog a delete is served first and a watch last.
const (
	PriorityDelete = 1
	PriorityCreate = 2
	PriorityRead   = 3
	priorityWatch  = 4
)

const (
	// retryWindow is how long the server repeats a call that fails as Transient;
	// after it the workflow shows the condition and paces itself.
	retryWindow = 90 * time.Second
	// firstRetry is the pause before the first repetition; it doubles.
	firstRetry = time.Second
	// longestRetry keeps several tries inside the window.
	longestRetry = 20 * time.Second
	// beat is how often an activity that may be long says that it lives.
	beat = 5 * time.Second
	// missedBeats is how long a silent worker counts as alive: a create whose worker
	// died is taken up again after it.
	missedBeats = 20 * time.Second
)

// Limits bound one activity: a single attempt, and all attempts together. Total
// also covers the wait for a worker.
type Limits struct{ Attempt, Total time.Duration }

// Call describes one short activity.
type Call struct {
	Limits   Limits
	Summary  string // what the Web UI shows
	Priority int
	// Attempts bounds a watch; 0 is no bound on a server, and 10 in the SDK's test
	// environment.
	Attempts int32
}

// WithCall is for one provider call. Its total is bounded, so that an outage
// returns control to the workflow.
func WithCall(ctx workflow.Context, c Call) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    c.Limits.Attempt,
		ScheduleToCloseTimeout: c.Limits.Total,
		HeartbeatTimeout:       missedBeats,
		Summary:                c.Summary,
		Priority:               temporal.Priority{PriorityKey: c.Priority},
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: firstRetry, BackoffCoefficient: 2, MaximumInterval: longestRetry,
			NonRetryableErrorTypes: classes(func(c providers.Class) bool { return c != providers.ErrTransient }),
		},
	})
}

// WithBackground is for a call that looks after the fleet: it yields to what makes and
// deletes instances.
func WithBackground(ctx workflow.Context, summary string, attempt, total time.Duration) workflow.Context {
	return WithCall(ctx, Call{Limits: Limits{Attempt: attempt, Total: total}, Summary: summary, Priority: PriorityRead})
}

// WithWatch is for AwaitChange: only "unchanged" and a lost worker are retried, for
// as long as the lease; every class of error is a change to report.
func WithWatch(ctx workflow.Context, c Call) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    c.Limits.Attempt,
		ScheduleToCloseTimeout: c.Limits.Total,
		HeartbeatTimeout:       missedBeats, // or a worker that died looking is missed for a whole attempt
		Summary:                c.Summary,
		Priority:               temporal.Priority{PriorityKey: priorityWatch},
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: firstRetry, MaximumInterval: time.Minute, MaximumAttempts: c.Attempts,
			NonRetryableErrorTypes: classes(func(providers.Class) bool { return true }),
		},
	})
}

// classes names the classes that keep says.
func classes(keep func(providers.Class) bool) (names []string) {
	for _, class := range providers.Classes() {
		if keep(class) {
			names = append(names, string(class))
		}
	}
	return names
}
