package proxy

import (
	"cmp"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

type action string

const (
	actionNone   action = "none"
	actionCreate action = "create"
	actionDelete action = "delete"
	actionForget action = "forget" // what is known to be gone
)

// plan is what one round does, the phase it leads to, the reason it gives, and what
// ends the wait for the next round.
type plan struct {
	Do   action
	Then v1.Phase
	Why  string // a condition's reason
	Next wait
}

// wait is what a round waits for. Every kind is one future raced against the
// messages, so there is one way to wait and no hidden "forever". The zero wait is
// not valid: take one of the constructors.
type wait struct {
	kind kind
	pace pace
}

type kind string

const (
	kindAfter kind = "after"
	kindWatch kind = "watch"
	kindPark  kind = "park"
	// kindPrepare has the provider fetch what the create lacked.
	kindPrepare kind = "prepare"
	kindDone    kind = "done"
)

// after waits for a timer.
func after(p pace) wait { return wait{kindAfter, p} }

// watch waits until the backend's answer changes.
func watch(p pace) wait { return wait{kindWatch, p} }

// park waits for a release: only a message that changes something ends it, or the
// slow probe.
func park(p pace) wait { return wait{kindPark, p} }

// prepare waits until the provider has fetched what a create needs. It is a wait and no
// call: it may take hours, and every message ends it that changes what is wanted.
func prepare() wait { return wait{kind: kindPrepare} }

// done closes the workflow.
func done() wait { return wait{kind: kindDone} }

// decide picks the next action from the state and what was just seen. It is pure:
// no workflow.Context, no clock.
func decide(s State, o observation) plan {
	switch {
	case s.SkipCleanup != "":
		return decideLeaving(s)
	case o.Failure != nil:
		return decideFailure(s, *o.Failure)
	case o.Gone && !s.believes(o.At):
		return decideDoubtful(s, o)
	case s.Deleting:
		return decideDeleting(o)
	case o.CreateFailed != nil:
		return decideCreateFailed(s, *o.CreateFailed)
	default:
		return decideLiving(s, o)
	}
}

// decideDoubtful waits before a NotFound is believed: a little, or as long as the
// backend may hide what it has just made.
func decideDoubtful(s State, o observation) plan {
	p := plan{actionNone, s.phase(), v1.ReasonInstanceLost, after(paceConfirm)}
	switch {
	case s.settling(o.At):
		p.Next, p.Why = after(paceBusy), v1.ReasonProvisioning
	case s.Status.ProviderID == "":
		p.Why = v1.ReasonProvisioning
	}
	if s.Deleting {
		p.Why = v1.ReasonInProgress
	}
	return p
}

func decideDeleting(o observation) plan {
	if o.Instance == nil && o.CreateFailed == nil {
		return plan{actionForget, v1.PhaseDeleting, v1.ReasonInProgress, done()}
	}
	p := plan{actionDelete, v1.PhaseDeleting, v1.ReasonInProgress, watch(paceBusy)}
	if !o.mayDelete() {
		p.Do = actionNone
	}
	return p
}

// mayDelete is false while the backend says that it is deleting, and shortly after a
// Delete was accepted.
func (o observation) mayDelete() bool {
	return o.DeleteDue && (o.Instance == nil || !o.Instance.Deleting)
}

func decideLiving(s State, o observation) plan {
	inst := o.Instance
	if inst == nil {
		return decideMaking(s, o)
	}
	why := s.unwanted(inst)
	if why != "" && s.unknown() && !s.Removing {
		return cannotMake()
	}
	if why != "" {
		p := plan{actionDelete, v1.PhaseReplacing, why, watch(paceBusy)}
		if !o.mayDelete() {
			p.Do = actionNone
		}
		return p
	}
	if inst.State == providers.StateRunning && inst.IP != "" && o.Secret != nil {
		return plan{actionNone, v1.PhaseRunning, o.Secret.reason(), watch(paceSecret)}
	}
	if inst.State == providers.StateRunning && inst.IP != "" {
		return plan{actionNone, v1.PhaseRunning, v1.ReasonCreated, watch(paceSteady)}
	}
	return plan{actionNone, v1.PhaseProvisioning, v1.ReasonProvisioning, watch(paceBusy)}
}

// decideMaking makes an instance where there is none, unless it has to wait. What is
// known to be gone is then forgotten; what may be there never is.
func decideMaking(s State, o observation) plan {
	p := plan{actionCreate, v1.PhaseProvisioning, lossOf(s, o), watch(paceBusy)}
	switch {
	case s.unknown():
		p = cannotMake()
	case o.Secret != nil:
		p = decideFailure(s, *o.Secret)
	case !o.CreateDue:
		p = plan{actionNone, v1.PhasePending, lossOf(s, o), after(paceRemake)}
	default:
		return p
	}
	if o.Gone {
		p.Do = actionForget
		if p.Next.kind == kindWatch { // there is nothing to watch
			p.Next = after(p.Next.pace)
		}
		if p.Then != v1.PhaseBlocked {
			p.Then = v1.PhasePending
		}
	}
	return p
}

// lossOf says why an instance is made: the first one, or one for another.
func lossOf(s State, o observation) string {
	switch {
	case o.Gone && s.Status.ProviderID != "" && !s.Removing:
		return v1.ReasonInstanceLost
	case o.CreateDue:
		return v1.ReasonProvisioning
	default:
		return cmp.Or(s.reason(), v1.ReasonInstanceLost) // of the loss before
	}
}

// decideCreateFailed waits once as the class says; the round after the wait removes
// what the create may have left, and the next one creates anew. What is not wanted any
// more is not waited for.
func decideCreateFailed(s State, f failure) plan {
	if s.Lapsed == s.Attempt || s.Replace != "" || !s.current() {
		return plan{actionDelete, v1.PhaseReplacing, v1.ReasonCreateFailed, watch(paceBusy)}
	}
	p := plan{actionNone, v1.PhaseProvisioning, v1.ReasonCreateFailed, after(paceRetry)}
	switch f.Class {
	case providers.ErrPermanent:
		p.Then, p.Next = v1.PhaseBlocked, park(paceProbe)
	case providers.ErrQuotaExceeded:
		p.Next = after(paceQuota)
	case providers.ErrNotFound, providers.ErrTransient:
	}
	return p
}

// decideFailure picks what to do about a classified error. The workflow never fails
// on one: the proxy outlives every outage.
func decideFailure(s State, f failure) plan {
	p := plan{Do: actionNone, Then: s.phase(), Why: f.reason()}
	switch {
	case f.Class == providers.ErrPermanent && !s.Deleting:
		p.Then, p.Next = v1.PhaseBlocked, park(paceProbe)
	case f.Reason == v1.ReasonLeftBehind:
		// Its place cannot be asked and will not be: waiting changes nothing. No history from
		// before this answer holds it, so it needs no version.
		p.Next = done()
	case f.Class == providers.ErrPermanent && f.Look && s.Status.ProviderID != "":
		// Get can never answer for this ID; a Delete that works is the end (contract §2.2).
		return plan{actionDelete, v1.PhaseDeleting, v1.ReasonInProgress, done()}
	case f.Class == providers.ErrPermanent, f.Class == providers.ErrQuotaExceeded:
		p.Next = s.again(f, paceQuota)
	default:
		p.Next = s.again(f, paceRetry)
	}
	return p
}

// again watches a failing look, which costs no history while the outage lasts;
// anything else is done again after a timer.
func (s State) again(f failure, p pace) wait {
	if f.Look && s.Status.ProviderID != "" {
		return watch(p)
	}
	return after(p)
}

// reason is the word that a condition gives for a failure.
func (f failure) reason() string {
	if f.Reason != "" {
		return f.Reason
	}
	switch f.Class {
	case providers.ErrQuotaExceeded:
		return v1.ReasonQuotaExceeded
	case providers.ErrPermanent:
		return v1.ReasonPermanentError
	case providers.ErrNotFound, providers.ErrTransient:
	}
	return v1.ReasonTransientError
}
