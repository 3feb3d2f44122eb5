package proxy

import (
	"cmp"
	"fmt"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Result is what a Proxy that ended says in the end. Serialised.
type Result struct {
	// Left names what was not removed; empty: nothing is left at the backend.
	Left string `json:"left,omitempty"`
	// Reason says why it was left.
	Reason string `json:"reason,omitempty"`
}

// decideLeaving closes the workflow without another call: who asked for that has
// waited long enough. What may be there is named.
func decideLeaving(s State) plan {
	p := plan{actionNone, v1.PhaseDeleting, v1.ReasonLeftBehind, done()}
	if s.left() == "" {
		p.Do, p.Why = actionForget, v1.ReasonInProgress
	}
	return p
}

// left names what there is, or may be, at the backend; empty for nothing.
func (s State) left() string {
	switch {
	case s.Status.ProviderID != "":
		return fmt.Sprintf("instance %s on provider %s", s.Status.ProviderID, s.Spec.Provider)
	case s.Creating:
		return fmt.Sprintf("what a create of unknown outcome made on provider %s", s.Spec.Provider)
	default:
		return ""
	}
}

func (e *entity) result() Result {
	c, _ := e.state.Status.Condition(v1.ConditionDeleting)
	if c.Reason != v1.ReasonLeftBehind {
		return Result{}
	}
	return Result{Left: e.state.left(), Reason: cmp.Or(e.state.SkipCleanup, c.Message)}
}
