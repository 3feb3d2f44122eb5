package proxy

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// record writes down what a round came to and publishes it.
func (e *entity) record(ctx workflow.Context, p plan, o observation) {
	s, now := &e.state, workflow.Now(ctx)
	f := o.Failure
	if f == nil {
		f = o.CreateFailed
	}
	was, wasProvisioned := s.Status, s.reason()
	s.count(f, p)
	s.Status.NextAttemptAt = time.Time{}
	if f != nil && p.Next.kind != kindWatch && p.Next.kind != kindDone {
		s.Status.NextAttemptAt = now.Add(e.timing.pause(p.Next.pace, s.Failures))
	}
	s.Status.Phase, s.Status.ObservedGeneration, s.Status.SpecHash = p.Then, s.Generation, s.MadeFrom
	if was.Phase != p.Then {
		s.Status.Since = now
	}
	s.address(p)
	s.conclude(now, p, f)
	if was.Phase != p.Then || wasProvisioned != s.reason() || (p.Do != actionNone && f == nil) {
		e.note(ctx, p.Why, classOf(f), s.sentence(p, f))
	}
	e.publish(ctx)
}

// count keeps how often a round has failed in a row, and what was waited for.
func (s *State) count(f *failure, p plan) {
	s.Patient = f != nil && p.Next.kind != kindWatch
	if f == nil {
		s.Failures = 0
		return
	}
	s.Failures++
	if p.Why == v1.ReasonCreateFailed && p.Do == actionNone {
		s.Lapsed = s.Attempt
	}
}

// address shows where the proxy listens as long as the backend's last word was that
// it runs.
func (s *State) address(p plan) {
	s.Status.IP = ""
	if s.Known.State == providers.StateRunning && (p.Then == v1.PhaseRunning || p.Then == v1.PhaseBlocked) {
		s.Status.IP = s.Known.IP
	}
	if s.Known.EgressIP != "" || s.Status.IP == "" {
		s.Status.EgressIP = s.Known.EgressIP
	}
}

// conclude sets the conditions.
func (s *State) conclude(now time.Time, p plan, f *failure) {
	if s.Deleting {
		s.Status.SetCondition(now, s.deleting(now, p, f))
		return
	}
	s.Status.SetCondition(now, s.provisioned(now, p, f))
	if _, judged := s.Status.Condition(v1.ConditionHealthy); !judged || s.Status.Healthy == nil {
		s.Status.SetCondition(now, v1.Condition{
			Type: v1.ConditionHealthy, Status: v1.ConditionUnknown, Reason: v1.ReasonNotProbed,
			Message: "no probe has looked at this instance yet",
		})
	}
}

func (s *State) provisioned(now time.Time, p plan, f *failure) v1.Condition {
	c := v1.Condition{Type: v1.ConditionProvisioned, Status: v1.ConditionFalse, Reason: p.Why, Message: s.sentence(p, f)}
	switch {
	case f != nil && f.Look && s.Known.State == providers.StateRunning:
		c.Status = v1.ConditionUnknown // it ran when it could last be asked
	case p.Then == v1.PhaseRunning && f == nil && p.Why == v1.ReasonCreated:
		c.Status = v1.ConditionTrue
	case p.Then == v1.PhaseProvisioning && f == nil &&
		now.Sub(s.Began) > s.Spec.Deadlines.Provisioning.Or(defaultProvisioning):
		c.Reason = v1.ReasonProvisioningTimeout
	}
	return c
}

func (s *State) deleting(now time.Time, p plan, f *failure) v1.Condition {
	c := v1.Condition{Type: v1.ConditionDeleting, Status: v1.ConditionTrue, Reason: p.Why, Message: s.sentence(p, f)}
	if f == nil && now.Sub(s.Began) > s.Spec.Deadlines.Delete.Or(defaultDelete) {
		c.Reason = v1.ReasonStuckDeleting
	}
	return c
}

// reason is the word of the condition that matters now.
func (s *State) reason() string {
	kind := v1.ConditionProvisioned
	if s.Deleting {
		kind = v1.ConditionDeleting
	}
	c, _ := s.Status.Condition(kind)
	return c.Reason
}

// sentence says what was done or what stands against it, and what happens next.
func (s *State) sentence(p plan, f *failure) string {
	switch {
	case f != nil:
		return f.Text + "; " + s.next(p)
	case p.Do == actionCreate:
		return "the backend was asked for an instance; watching until it runs with an address"
	case p.Do == actionDelete && p.Next.kind == kindDone:
		return "the backend took the removal and does not answer for the instance: nothing could be verified; " +
			"the workflow closes"
	case p.Do == actionDelete:
		return "the backend was asked to remove the instance; watching until it is gone"
	case p.Do == actionForget:
		return "nothing is left at the backend; the workflow closes"
	case p.Next.kind == kindAfter:
		return "the backend does not show the instance; looking again before that is believed"
	case p.Then == v1.PhaseRunning:
		return fmt.Sprintf("the instance runs at %s", s.Known.IP)
	case p.Then == v1.PhaseProvisioning:
		return "the instance is there; watching until it runs with an address"
	default:
		return "the backend is removing the instance; watching until it is gone"
	}
}

// next says what ends the wait after a failure.
func (s *State) next(p plan) string {
	at := s.Status.NextAttemptAt.UTC().Format(time.RFC3339)
	switch p.Next.kind {
	case kindPark:
		return "no more calls until the spec changes or a retry is asked for; one look at " + at
	case kindWatch:
		return "looking again until it answers"
	case kindAfter:
		return "next attempt at " + at
	case kindDone:
	}
	return "the workflow closes"
}

func classOf(f *failure) string {
	if f == nil {
		return ""
	}
	return string(f.Class)
}
