package proxy

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// record writes down what a round came to and publishes it.
func (e *entity) record(ctx workflow.Context, p plan, o observation) {
	s, now := &e.state, workflow.Now(ctx)
	f := o.against()
	if s.Deleting && p.Then != v1.PhaseDeleting { // asked for while the plan was carried out
		p.Then, p.Why = v1.PhaseDeleting, v1.ReasonInProgress
	}
	was, reasoned := s.Status, s.reason()
	s.count(f, p)
	s.Status.NextAttemptAt = time.Time{}
	if p.Next.kind == kindPark || p.Next.kind == kindAfter {
		s.Status.NextAttemptAt = now.Add(e.pause(p.Next.pace))
	}
	s.Status.Phase, s.Status.SpecHash = p.Then, s.MadeFrom
	if was.Phase != p.Then {
		s.Status.Since = now
	}
	if took, arrived := s.arrive(now, was.Phase, p.Then); arrived {
		e.tellTime(ctx, TimeToRunning, took)
	}
	s.address(p)
	passed := e.passDeadline(now)
	s.conclude(now, p, f)
	if was.Phase != p.Then || reasoned != s.reason() || f == nil && p.isNews(was.Phase) {
		e.note(ctx, p.Why, classOf(f), s.sentence(p, f))
	}
	if passed {
		e.noteDeadline(ctx)
	}
	e.publish(ctx)
}

// isNews reports whether a plan that worked belongs into the timeline though nothing
// else has changed. A Delete that is repeated does not.
func (p plan) isNews(was v1.Phase) bool {
	return p.Do != actionNone && (p.Do != actionDelete || was != p.Then)
}

// against returns what stands against the proxy.
func (o observation) against() *failure {
	switch {
	case o.Failure != nil:
		return o.Failure
	case o.CreateFailed != nil:
		return o.CreateFailed
	default:
		return o.Secret
	}
}

// count keeps how often a round has failed in a row, and what was waited for. Every
// timer has a reason that a hint knows nothing about.
func (s *State) count(f *failure, p plan) {
	s.Patient = p.Next.kind == kindAfter || p.Next.kind == kindPark || p.Next.kind == kindPrepare
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
	s.concludeHealth(now)
}

// concludeHealth leaves the last verdict as it is, and says that a deadline has passed.
func (s *State) concludeHealth(now time.Time) {
	c, judged := s.Status.Condition(v1.ConditionHealthy)
	if !judged || s.Status.Healthy == nil && !s.Undecided {
		c = v1.Condition{
			Type: v1.ConditionHealthy, Status: v1.ConditionUnknown, Reason: v1.ReasonNotProbed,
			Message: "no probe has looked at this instance yet",
		}
	}
	if late := s.late(); s.Overdue == deadlineFirstHealthy && !strings.HasSuffix(c.Message, late) {
		c.Message += late
	}
	s.Status.SetCondition(now, c)
}

func (s *State) provisioned(now time.Time, p plan, f *failure) v1.Condition {
	c := v1.Condition{Type: v1.ConditionProvisioned, Status: v1.ConditionFalse, Reason: p.Why, Message: s.sentence(p, f)}
	if s.Overdue == deadlineProvisioning {
		c.Message += s.late()
	}
	switch {
	case f != nil && f.Look && s.Known.State == providers.StateRunning:
		c.Status = v1.ConditionUnknown // it ran when it could last be asked
	case p.Then == v1.PhaseRunning && f == nil && p.Why == v1.ReasonCreated:
		c.Status = v1.ConditionTrue
	case p.Then == v1.PhaseProvisioning && f == nil && !s.Ran &&
		now.Sub(s.Began) > s.Spec.Deadlines.Provisioning.Or(defaultProvisioning):
		c.Reason = v1.ReasonProvisioningTimeout
	}
	return c
}

func (s *State) deleting(now time.Time, p plan, f *failure) v1.Condition {
	c := v1.Condition{Type: v1.ConditionDeleting, Status: v1.ConditionTrue, Reason: p.Why, Message: s.sentence(p, f)}
	c.Message += s.late()
	if f == nil && p.Why != v1.ReasonLeftBehind && now.Sub(s.Began) > s.Spec.Deadlines.Delete.Or(defaultDelete) {
		c.Reason = v1.ReasonStuckDeleting
	}
	return c
}

// reason is the word of the condition that matters now.
func (s State) reason() string {
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
	case p.Next.kind == kindDone:
		return s.lastSentence(p)
	case p.Why == v1.ReasonCloudInitUnknown:
		return s.unmakeable()
	case p.Next.kind == kindPrepare:
		return s.Lacking + " is being fetched; the instance is created once it is there"
	case p.Do == actionCreate:
		return "the backend was asked for an instance; watching until it runs with an address"
	case p.Do == actionDelete:
		return "the backend was asked to remove the instance" + s.because() + "; watching until it is gone"
	case p.Next.pace == paceRemake:
		return fmt.Sprintf("%d instances in a row did not stay%s; another one is made at %s",
			s.Makes, s.because(), s.Status.NextAttemptAt.UTC().Format(time.RFC3339))
	case p.Next.kind == kindAfter:
		return "the backend does not show the instance; looking again before that is believed"
	case p.Then == v1.PhaseRunning:
		return fmt.Sprintf("the instance runs at %s", s.Known.IP)
	case p.Then == v1.PhaseProvisioning:
		return "the instance is there" + s.because() + "; watching until it runs with an address"
	default:
		return "the backend is removing the instance; watching until it is gone"
	}
}

// lastSentence says what is left when the workflow closes.
func (s *State) lastSentence(p plan) string {
	switch {
	case p.Why == v1.ReasonLeftBehind:
		return s.left() + " is left behind, not verified (" + s.SkipCleanup + "); the workflow closes, and orphan " +
			"collection removes it once the provider can be reached"
	case p.Do == actionDelete:
		return "the backend took the removal and does not answer for the instance: nothing could be verified; " +
			"the workflow closes"
	default:
		return "nothing is left at the backend; the workflow closes"
	}
}

// because is the backend's own reason for a state, where it gave one.
func (s *State) because() string {
	if s.Known.Reason == "" {
		return ""
	}
	return " (" + brief(s.Known.Reason, detailKept) + ")"
}

// next says what ends the wait after a failure.
func (s *State) next(p plan) string {
	at := s.Status.NextAttemptAt.UTC().Format(time.RFC3339)
	switch p.Next.kind {
	case kindPark:
		return "no more calls until the spec or the provider's configuration changes, or a retry is asked for; " +
			"one look at " + at
	case kindWatch:
		return "looking again until it answers"
	case kindAfter:
		return "next attempt at " + at
	case kindDone, kindPrepare:
	}
	return "the workflow closes"
}

func classOf(f *failure) string {
	if f == nil {
		return ""
	}
	return string(f.Class)
}
