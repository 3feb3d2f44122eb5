package proxy

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// oneWord is a reason that can be a condition's as it is.
var oneWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

func (e *entity) validateHold(in HoldInput) error {
	if err := e.refuseDeleting(); err != nil {
		return err
	}
	if in.For == "" {
		return nil
	}
	if e.version < versionDeadlines {
		return refuse(ErrConflict, Refusal{"for", brief(string(in.For), wordKept), fromBefore})
	}
	err := v1.Hold{For: in.For}.Validate() // a long reason is cut, not refused
	if field, ok := errors.AsType[*v1.FieldError](err); ok {
		return refuse(ErrInvalid, Refusal{field.Field, field.Value, field.Problem})
	}
	return err
}

// handleHold changes what discovery shows, and nothing at the backend: no round. A
// second hold replaces the first, its end included.
func (e *entity) handleHold(ctx workflow.Context, in HoldInput) (Receipt, error) {
	return e.once(ctx, func() {
		now, reason, message := workflow.Now(ctx), "HoldRequested", brief(in.Reason, textKept)
		if oneWord.MatchString(in.Reason) {
			reason, message = in.Reason, ""
		}
		e.state.HoldUntil = time.Time{}
		if in.For != "" && e.version >= versionDeadlines {
			e.state.HoldUntil = now.Add(in.For.Or(0))
			message = strings.TrimPrefix(message+"; until "+e.state.HoldUntil.UTC().Format(time.RFC3339), "; ")
		}
		e.state.Status.Held, e.dirty = true, true
		e.state.Status.SetCondition(now, v1.Condition{
			Type: v1.ConditionHeld, Status: v1.ConditionTrue, Reason: reason, Message: message,
		})
		e.note(ctx, reason, "", message)
	}), nil
}

func (e *entity) validateResume(Why) error { return e.refuseDeleting() }

func (e *entity) handleResume(ctx workflow.Context, why Why) (Receipt, error) {
	return e.once(ctx, func() { e.resumeHeld(ctx, brief(why.Reason, textKept)) }), nil
}

// resumeHeld ends a hold, by whoever.
func (e *entity) resumeHeld(ctx workflow.Context, detail string) {
	e.state.Status.Held, e.state.HoldUntil, e.dirty = false, time.Time{}, true
	e.state.Status.DropCondition(v1.ConditionHeld)
	e.note(ctx, "Resumed", "", detail)
}
