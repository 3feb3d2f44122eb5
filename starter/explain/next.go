package explain

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// next says what happens next, when, and what a person could do about it.
func (t teller) next() string {
	return strings.Join(said(t.comes(), t.help()), " ")
}

// comes is what the proxy's workflow does by itself.
func (t teller) comes() string {
	s := t.Status
	c, _ := t.decisive()
	switch {
	case c.Type == v1.ConditionDeleting && c.Reason == v1.ReasonLeftBehind:
		return "It ends now."
	case c.Reason == v1.ReasonNotPrepared:
		return "It is made once that is there."
	case s.Phase == v1.PhaseBlocked:
		return "No call is made before the spec or the provider's configuration changes, or \"starter retry " +
			t.Metadata.Name + "\" asks for one; it also looks once by itself" + t.due() + "."
	case !s.NextAttemptAt.IsZero():
		return t.attempt() + t.due() + "." + t.overdue()
	default:
		return watches()[s.Phase]
	}
}

// watches says what a proxy does that waits for its backend, and for no timer.
func watches() map[v1.Phase]string {
	const untilGone = "The backend is looked at every few seconds until it shows nothing any more; "
	return map[v1.Phase]string{
		"":              "A worker takes it up within a moment. If this lasts, no worker is running.",
		v1.PhasePending: "Its workflow tries to make an instance next.",
		v1.PhaseProvisioning: "The backend is looked at every few seconds. " +
			"Once the instance runs with an address, the proxy is Running and discovery hands it out.",
		v1.PhaseRunning: "A health round probes it once a minute, and the drift sweep notices within two minutes if the " +
			"instance is lost or stopped; another one is made then.",
		v1.PhaseReplacing: untilGone + "then another instance is made.",
		v1.PhaseDeleting:  untilGone + "then the proxy ends.",
		v1.PhaseBlocked:   "", // has a sentence of its own
	}
}

// attempt is what a timer is waited for.
func (t teller) attempt() string {
	switch t.Status.Phase {
	case v1.PhaseDeleting:
		return "The removal is tried again"
	case v1.PhaseReplacing:
		return "The removal of the old instance is tried again"
	case v1.PhaseRunning:
		return "The backend is asked again"
	default:
		return "It tries again"
	}
}

// due is when the workflow acts by itself.
func (t teller) due() string {
	at := t.Status.NextAttemptAt
	switch {
	case at.IsZero():
		return ""
	case at.After(t.now):
		return fmt.Sprintf(" in %s, at %s UTC", long(at.Sub(t.now)), at.UTC().Format(time.DateTime))
	default:
		return fmt.Sprintf(", which has been due since %s UTC", at.UTC().Format(time.DateTime))
	}
}

// lateAfter is how late an attempt may be before a worker is missed: it is shown once
// it has come to something.
const lateAfter = 2 * time.Minute

func (t teller) overdue() string {
	if t.now.Sub(t.Status.NextAttemptAt) < lateAfter {
		return ""
	}
	return " No worker may be running."
}

func (t teller) help() string {
	var all []string
	if c, told := t.decisive(); told {
		of, _ := lookUp(c.Type, c.Reason)
		all = append(all, of.help)
	}
	for _, kind := range []string{v1.ConditionHealthy, v1.ConditionOpenProxy, v1.ConditionAdopted} {
		c, told := t.Status.Condition(kind)
		if told && t.Status.Phase == v1.PhaseRunning {
			of, _ := lookUp(kind, c.Reason)
			all = append(all, of.help)
		}
	}
	return strings.Join(said(all...), " ")
}

// leaves says what bad health leads to.
func (t teller) leaves() string {
	c, _ := t.Status.Condition(v1.ConditionHealthy)
	if t.Status.Phase != v1.PhaseRunning || c.Status != v1.ConditionFalse {
		return ""
	}
	e, _ := v1.ReachableOf(t.Proxy)
	switch {
	case e.LeaveAt.IsZero():
		return "It is not replaced for bad health, since spec.healthCheck.replaceAfter is not set; " +
			"it comes back into discovery once it passes."
	case e.LeaveAt.After(t.now):
		return fmt.Sprintf("Unless it passes before, it may be replaced in %s, at %s UTC.",
			long(e.LeaveAt.Sub(t.now)), e.LeaveAt.UTC().Format(time.DateTime))
	default:
		return "It is to be replaced, and waits for its turn: one of a provider at a time, and none while most of them fail."
	}
}
