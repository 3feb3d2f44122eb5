package proxy

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// The deadlines, as the spec calls them. Passing one stops no work.
const (
	deadlineProvisioning = "provisioning"
	deadlineFirstHealthy = "firstHealthy"
	deadlineDelete       = "delete"
)

// deadline is what a proxy has to reach, and by when.
type deadline struct {
	name  string
	limit time.Duration
	at    time.Time
}

// deadline returns the one that the proxy is under now; the zero one while it is under
// none. It is pure.
func (s State) deadline() deadline {
	limits := s.Spec.Deadlines
	switch {
	case s.Deleting:
		return s.within(deadlineDelete, s.Began, limits.Delete.Or(defaultDelete))
	case s.RanAt.IsZero() && s.Ran: // it was made in time; what it is now has reasons of its own
		return deadline{}
	case s.RanAt.IsZero():
		return s.within(deadlineProvisioning, s.Began, limits.Provisioning.Or(defaultProvisioning))
	case !s.EverHealthy && !s.Undecided && !s.Spec.HealthCheck.Disabled:
		return s.within(deadlineFirstHealthy, s.RanAt, limits.FirstHealthy.Or(defaultFirstHealthy))
	default:
		return deadline{}
	}
}

func (s State) within(name string, since time.Time, limit time.Duration) deadline {
	if since.IsZero() {
		return deadline{}
	}
	return deadline{name, limit, since.Add(limit)}
}

// overdue reports whether the proxy is past a deadline.
func (d deadline) overdue(now time.Time) bool { return d.name != "" && !now.Before(d.at) }

// passDeadline remembers a deadline that has been passed, and reports whether that is
// news. A run that began before there were deadlines keeps its course.
func (e *entity) passDeadline(now time.Time) (news bool) {
	if e.version < versionDeadlines {
		return false
	}
	d := e.state.deadline()
	was := e.state.Overdue
	e.state.Overdue = ""
	if d.overdue(now) {
		e.state.Overdue = d.name
	}
	return e.state.Overdue != "" && was != e.state.Overdue
}

// noteDeadline tells once that a deadline has passed.
func (e *entity) noteDeadline(ctx workflow.Context) {
	reason := map[string]string{
		deadlineProvisioning: v1.ReasonProvisioningTimeout,
		deadlineFirstHealthy: "FirstHealthyTimeout",
		deadlineDelete:       v1.ReasonStuckDeleting,
	}[e.state.Overdue]
	e.note(ctx, reason, "", "the deadline has passed"+e.state.late()+"; the work goes on")
}

// late says which deadline has passed; empty for none.
func (s State) late() string {
	if s.Overdue == "" {
		return ""
	}
	return fmt.Sprintf("; past deadlines.%s of %s", s.Overdue, s.deadline().limit)
}

// pendingDeadline is when the deadline passes that the proxy is under; zero for none.
func (e *entity) pendingDeadline(now time.Time) time.Time {
	d := e.state.deadline()
	if e.version < versionDeadlines || d.name == "" || d.overdue(now) {
		return time.Time{}
	}
	return d.at
}

// watchedDeadline is the one that a wait notices by itself: a watch ends in time for it.
func (e *entity) watchedDeadline(ctx workflow.Context, w wait) time.Time {
	if w.kind != kindWatch {
		return time.Time{}
	}
	return e.pendingDeadline(workflow.Now(ctx))
}

// unwatched is the deadline that a clock has to tell of: any but the watched one.
func (e *entity) unwatched(ctx workflow.Context, watched time.Time) time.Time {
	at := e.pendingDeadline(workflow.Now(ctx))
	if at.Equal(watched) {
		return time.Time{}
	}
	return at
}

// passWaiting tells of a deadline that passes while a proxy waits: for quota, for a
// release, or with a verdict that came after its watch had begun. It is no round.
func (e *entity) passWaiting(ctx workflow.Context) {
	now, s := workflow.Now(ctx), &e.state
	if !e.passDeadline(now) {
		return
	}
	kind := v1.ConditionProvisioned
	switch s.Overdue {
	case deadlineDelete:
		kind = v1.ConditionDeleting
	case deadlineFirstHealthy:
		kind = v1.ConditionHealthy
	}
	if c, ok := s.Status.Condition(kind); ok {
		c.Message += s.late()
		s.Status.SetCondition(now, c)
	}
	e.dirty = true
	e.noteDeadline(ctx)
}

// reportWithin is how soon a watch has to end for a deadline to be noticed; 0 for never.
func (e *entity) reportWithin(now time.Time) time.Duration {
	at := e.pendingDeadline(now)
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(now), time.Second)
}
