// Package explain says in sentences why a proxy is in its phase, and what happens next
// and when. It is pure: what it says comes from the Proxy, its timeline and the time. It
// imports the public words only. Start reading at Of; reasons.go has a sentence for
// every reason.
package explain

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Explanation is what there is to say of a Proxy, a sentence or two in each entry. It
// holds no user-data.
type Explanation struct {
	// Now is what is true.
	Now []string `json:"now"`
	// Why is what it comes from, and what the backend says.
	Why []string `json:"why"`
	// Next is what happens next, when, and what a person could do.
	Next []string `json:"next"`
}

// Of explains a Proxy. The timeline may be empty, where no worker can be asked.
func Of(p v1.Proxy, timeline []v1.Event, now time.Time) Explanation {
	t := teller{p, timeline, now}
	return Explanation{
		Now:  said(t.phase(), t.discovery(), t.held(), t.spec()),
		Why:  said(t.because(), t.health(), t.open(), t.adopted(), t.asked(), t.before()),
		Next: said(t.next(), t.leaves()),
	}
}

// teller is what a sentence can be made of.
type teller struct {
	v1.Proxy
	timeline []v1.Event
	now      time.Time
}

// said leaves out what there is nothing to say about.
func said(sentences ...string) []string {
	all := []string{}
	for _, s := range sentences {
		if s != "" {
			all = append(all, s)
		}
	}
	return all
}

func (t teller) phase() string {
	name, s := t.Metadata.Namespace+"/"+t.Metadata.Name, t.Status
	if s.Phase == "" {
		return name + " has been asked for, and no worker has taken it up yet."
	}
	lasts := ""
	if !s.Since.IsZero() {
		lasts = " for " + long(t.now.Sub(s.Since))
	}
	meaning, known := phases()[s.Phase]
	if !known {
		meaning = "a phase that this program does not know: it may be older than the workers"
	}
	return fmt.Sprintf("%s is %s%s: %s.", name, s.Phase, lasts, meaning)
}

func phases() map[v1.Phase]string {
	return map[v1.Phase]string{
		v1.PhasePending:      "there is nothing of it at the backend",
		v1.PhaseProvisioning: "its instance has been asked for, and does not run with an address yet",
		v1.PhaseRunning:      "its instance runs and has an address",
		v1.PhaseReplacing:    "its instance is being removed, and another one is made after it",
		v1.PhaseBlocked:      "it has stopped trying, since trying again would not help",
		v1.PhaseDeleting:     "its instance is being removed for good",
	}
}

// discovery says whether crawlers are told of it.
func (t teller) discovery() string {
	e, reachable := v1.ReachableOf(t.Proxy)
	switch {
	case e.Healthy && e.Unprobed:
		return "Discovery hands it out as " + e.URL + ", though no probe has looked at it yet."
	case e.Healthy:
		return "Discovery hands it out as " + e.URL + "."
	case reachable:
		return "Discovery does not hand it out, since it failed its probes."
	default:
		return "Discovery does not hand it out."
	}
}

func (t teller) held() string {
	c, _ := t.Status.Condition(v1.ConditionHeld)
	if !t.Status.Held {
		return ""
	}
	why := strings.Join(said(c.Reason, clean(c.Message)), ", ")
	if why != "" {
		why = " (" + why + ")"
	}
	return "Somebody holds it out of discovery" + t.lasting(c) + why + "; nothing happens at the backend for that."
}

// spec says that the newest spec has not been acted on yet.
func (t teller) spec() string {
	if t.Status.ObservedGeneration >= t.Metadata.Generation {
		return ""
	}
	return fmt.Sprintf("Generation %d of its spec is wanted, and generation %d is what was acted on.",
		t.Metadata.Generation, t.Status.ObservedGeneration)
}

// because is the sentence for the reason of the condition that matters now.
func (t teller) because() string {
	c, told := t.decisive()
	if !told {
		return ""
	}
	reason, known := lookUp(c.Type, c.Reason)
	if !known {
		return fmt.Sprintf("The reason is %s%s, which this program does not know: it may be older than the workers.%s",
			c.Reason, t.lasting(c), quoted("Its message is", c.Message))
	}
	text := fmt.Sprintf("%s (%s%s).", reason.why, c.Reason, t.lasting(c))
	if reason.fails {
		text += quoted("What is told of it is", c.Message)
	}
	return text
}

// decisive is the condition that the phase comes from.
func (t teller) decisive() (v1.Condition, bool) {
	if c, ok := t.Status.Condition(v1.ConditionDeleting); ok && c.Status == v1.ConditionTrue {
		return c, true
	}
	return t.Status.Condition(v1.ConditionProvisioned)
}

func (t teller) health() string {
	c, told := t.Status.Condition(v1.ConditionHealthy)
	if !told || t.Status.Phase != v1.PhaseRunning {
		return "" // a verdict about an instance that does not serve explains nothing
	}
	if t.Spec.HealthCheck.Disabled {
		return "It is not probed, since spec.healthCheck.disabled says so."
	}
	return t.verdict(c)
}

func (t teller) open() string {
	c, told := t.Status.Condition(v1.ConditionOpenProxy)
	if !told || c.Status == v1.ConditionFalse || t.Status.Phase != v1.PhaseRunning {
		return ""
	}
	return t.verdict(c)
}

func (t teller) adopted() string {
	c, told := t.Status.Condition(v1.ConditionAdopted)
	if !told || t.Status.Phase == v1.PhaseDeleting {
		return ""
	}
	reason, known := lookUp(c.Type, c.Reason)
	if !known {
		return ""
	}
	return fmt.Sprintf("%s (%s%s).", reason.why, c.Reason, t.lasting(c))
}

// verdict is the sentence for what a probe found.
func (t teller) verdict(c v1.Condition) string {
	reason, known := lookUp(c.Type, c.Reason)
	if !known {
		reason = account{why: "A probe found what this program does not know: it may be older than the workers", fails: true}
	}
	text := fmt.Sprintf("%s (%s%s).", reason.why, c.Reason, t.lasting(c))
	if reason.fails {
		text += quoted("The prober says", c.Message)
	}
	return text
}

// asked is the last message that it took: an event whose reason is none of a condition,
// and no deadline.
func (t teller) asked() string {
	for i := len(t.timeline) - 1; i >= 0; i-- {
		e := t.timeline[i]
		if e.Class == "" && !isReason(e.Reason) && !strings.HasSuffix(e.Reason, "Timeout") {
			return fmt.Sprintf("The last message to it is %s, %s ago.%s",
				e.Reason, long(t.now.Sub(e.At)), quoted("The reason given is", e.Detail))
		}
	}
	return ""
}

// before is the last trouble of one that is well again.
func (t teller) before() string {
	c, told := t.decisive()
	if !told || c.Type != v1.ConditionProvisioned || c.Status != v1.ConditionTrue {
		return ""
	}
	failed, last := 0, v1.Event{}
	for _, e := range t.timeline {
		if e.Class != "" {
			failed, last = failed+1, e
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("Of the %d steps in its timeline %d failed, the last one %s ago with %s.",
		len(t.timeline), failed, long(t.now.Sub(last.At)), last.Reason)
}

func (t teller) lasting(c v1.Condition) string {
	if c.LastTransitionTime.IsZero() {
		return ""
	}
	return " for " + long(t.now.Sub(c.LastTransitionTime))
}
