package proxy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Only is what has to be true of the proxy for a message to be taken.
type Only struct {
	// IfGeneration is the generation that the caller has seen; 0 is any.
	IfGeneration int64 `json:"ifGeneration,omitempty"`
}

func (o Only) expects() int64 { return o.IfGeneration }

// ApplyInput is the wanted spec, whole, and the labels.
type ApplyInput struct {
	Only
	Spec   v1.ProxySpec      `json:"spec"`
	Labels map[string]string `json:"labels,omitempty"`
}

// fromBefore is what is wrong with a wish that the release which began a run does not
// know: a worker of that release would do something else.
const fromBefore = "is not possible in a run that an older release began; send the signal hint with " +
	`{"renew": true} and ask again`

// ReplaceInput is the input of replace. Of, where it is set, is what has to be there
// still; what was made since is left alone.
type ReplaceInput struct {
	Only
	Reason string  `json:"reason,omitempty"`
	Of     Subject `json:"of,omitzero"`
}

// Subject is the instance that somebody looked at. The zero one is whatever is there.
type Subject struct {
	UID       string    `json:"uid,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"` // status.instanceCreatedAt
}

// SubjectOf is what a proxy shows.
func SubjectOf(p v1.Proxy) Subject { return Subject{p.Metadata.UID, p.Status.InstanceCreatedAt} }

func (s Subject) isOf(uid string, is v1.ProxyStatus) bool {
	return s == Subject{} || s.UID == uid && s.CreatedAt.Equal(is.InstanceCreatedAt)
}

// Why is the input of retry and resume: a sentence for the timeline.
type Why struct {
	Only
	Reason string `json:"reason,omitempty"`
}

// DeleteInput is the input of the update and of the signal delete. SkipCleanup, which
// needs a reason, closes the workflow without waiting for the backend.
type DeleteInput struct {
	Only
	Reason      string `json:"reason,omitempty"`
	SkipCleanup bool   `json:"skipCleanup,omitempty"`
}

// HoldInput is the input of hold. For is how long it lasts; empty: until resume.
type HoldInput struct {
	Only
	Reason string      `json:"reason,omitempty"`
	For    v1.Duration `json:"for,omitempty"`
}

// Receipt is what every update returns: the proxy as it is now, without the content
// of its user-data.
type Receipt struct {
	Proxy v1.Proxy `json:"proxy"`
	// BornOf is the request whose start made the proxy.
	BornOf string `json:"bornOf,omitempty"`
}

// register makes every message known before the run blocks for the first time.
func (e *entity) register(ctx workflow.Context) error {
	return errors.Join(
		update(ctx, e, updateName{UpdateApply, "want this spec and these labels"}, e.validateApply, e.handleApply),
		update(ctx, e, updateName{UpdateDelete, "remove the instance and end the proxy"}, e.validateDelete, e.handleDelete),
		update(ctx, e, updateName{UpdateReplace, "remove the instance and make another"}, e.validateReplace, e.handleReplace),
		update(ctx, e, updateName{UpdateRetry, "try again now; releases a blocked proxy"}, e.validateRetry, e.handleRetry),
		update(ctx, e, updateName{UpdateHold, "take the proxy out of discovery"}, e.validateHold, e.handleHold),
		update(ctx, e, updateName{UpdateResume, "end a hold"}, e.validateResume, e.handleResume),
		workflow.SetQueryHandler(ctx, QueryStatus, func() (v1.ProxyStatus, error) { return e.state.Status, nil }),
		workflow.SetQueryHandler(ctx, QueryTimeline, func() ([]v1.Event, error) { return e.state.Timeline, nil }),
		workflow.SetQueryHandler(ctx, QueryMessages, func() (int64, error) { return e.state.Messages, nil }),
	)
}

// updateName is an update on the wire, and what it says of itself.
type updateName struct{ name, description string }

// update ties a validator, which writes no history when it refuses, to a handler.
func update[T interface{ expects() int64 }](
	ctx workflow.Context, e *entity, u updateName,
	validate func(T) error, handle func(workflow.Context, T) (Receipt, error),
) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, u.name, handle, workflow.UpdateHandlerOptions{
		Description: u.description,
		Validator: func(ctx workflow.Context, in T) error {
			if err := e.expected(in.expects(), workflow.GetCurrentUpdateInfo(ctx).ID); err != nil {
				return err
			}
			return validate(in)
		},
	})
}

// expected refuses a message for a generation that is not there any more, unless it has
// had its effect already: its caller did not hear of that, and asks again.
func (e *entity) expected(generation int64, id string) error {
	if generation == 0 || generation == e.state.Generation || slices.Contains(e.state.Handled, id) {
		return nil
	}
	return refuse(ErrConflict, Refusal{
		FieldGeneration, strconv.FormatInt(e.state.Generation, 10),
		fmt.Sprintf("is not %d, which was expected", generation),
	})
}

func (e *entity) validateApply(in ApplyInput) error {
	if err := e.refuseDeleting(); err != nil {
		return err
	}
	spec, err := in.Spec.Restored(e.state.Spec)
	if err == nil {
		err = errors.Join(spec.Validate(), v1.ValidateLabels(in.Labels))
	}
	if field, ok := errors.AsType[*v1.FieldError](err); ok {
		return refuse(ErrInvalid, Refusal{field.Field, field.Value, field.Problem})
	}
	if is := e.state.Spec.Provider; in.Spec.Provider != is {
		return refuse(ErrConflict, Refusal{
			"spec.provider", in.Spec.Provider,
			fmt.Sprintf("cannot take the place of %q: a proxy never moves; delete it and make another", is),
		})
	}
	return e.refuseUnmakeable(ErrInvalid, spec, false)
}

func (e *entity) handleApply(ctx workflow.Context, in ApplyInput) (Receipt, error) {
	return e.once(ctx, func() {
		spec, err := in.Spec.Restored(e.state.Spec)
		if err != nil {
			return // the validator has refused it
		}
		e.confirm(spec)
		e.state.SecretStale = e.state.SecretStale || spec.CloudInit.SecretRef != nil
		if !maps.Equal(in.Labels, e.state.Labels) {
			e.state.Labels, e.dirty = in.Labels, true
		}
		if reflect.DeepEqual(spec, e.state.Spec) {
			// The secret may hold something else. A latch or a back-off goes on all the same.
			e.woken = e.woken || e.state.SecretStale && !e.state.Patient
			return
		}
		e.state.Spec = spec
		e.state.Generation++
		e.state.Makes = 0 // another spec may be one that stays
		e.wake(ctx, "SpecChanged", fmt.Sprintf("generation %d", e.state.Generation))
	}), nil
}

// validateDelete accepts a repetition. What is left at a backend has a reason.
func (e *entity) validateDelete(in DeleteInput) error {
	if in.SkipCleanup && strings.TrimSpace(in.Reason) == "" {
		return refuse(ErrInvalid, Refusal{"reason", "", "is empty: skipCleanup leaves an instance, and needs a reason"})
	}
	if in.SkipCleanup && e.version < versionDeadlines {
		return refuse(ErrConflict, Refusal{"skipCleanup", "true", fromBefore})
	}
	return nil
}

func (e *entity) handleDelete(ctx workflow.Context, in DeleteInput) (Receipt, error) {
	return e.once(ctx, func() { e.requestDelete(ctx, in) }), nil
}

func (e *entity) validateReplace(in ReplaceInput) error {
	if e.state.Status.ProviderID == "" {
		return refuse(ErrConflict, Refusal{"status.providerID", "", "is empty: there is no instance to replace"})
	}
	if !in.Of.isOf(e.uid, e.state.Status) {
		return refuse(ErrConflict, Refusal{
			"status.instanceCreatedAt", e.state.Status.InstanceCreatedAt.UTC().Format(time.RFC3339Nano),
			"is of another instance than the one to be replaced",
		})
	}
	if err := e.refuseUnmakeable(ErrConflict, e.state.Spec, true); err != nil {
		return err
	}
	return e.refuseDeleting()
}

// handleReplace begins a new row of makes for a person, who knows why. A sweep that
// replaces again and again is slowed down.
func (e *entity) handleReplace(ctx workflow.Context, in ReplaceInput) (Receipt, error) {
	return e.once(ctx, func() {
		e.state.Replace = "ReplaceRequested"
		if in.Of == (Subject{}) {
			e.state.Makes = 0
		}
		e.wake(ctx, e.state.Replace, in.Reason)
	}), nil
}

func (e *entity) validateRetry(Why) error { return nil }

func (e *entity) handleRetry(ctx workflow.Context, why Why) (Receipt, error) {
	return e.once(ctx, func() {
		e.state.SecretStale, e.state.Makes = true, 0
		e.wake(ctx, "RetryRequested", why.Reason)
	}), nil
}

// once lets an update have its effect a single time, also when a caller sends its ID
// again to a later run: the server only remembers IDs within a run.
func (e *entity) once(ctx workflow.Context, effect func()) Receipt {
	if e.state.once(workflow.GetCurrentUpdateInfo(ctx).ID) {
		effect()
	}
	return Receipt{Proxy: e.proxy(), BornOf: e.state.BornOf}
}

// wake asks for a round; it also releases the latch, which is only a wait.
func (e *entity) wake(ctx workflow.Context, reason, detail string) {
	e.woken, e.dirty = true, true
	e.state.Wait = nil                         // a run that hands over now leaves no timer in its way
	e.state.Status.NextAttemptAt = time.Time{} // it is now
	e.note(ctx, reason, "", detail)
}

// refuseDeleting also sees a delete that came as a signal in the same workflow task: an
// update is handled before the mail is taken, and what it promises would go with the proxy.
func (e *entity) refuseDeleting() error {
	if e.state.Deleting || e.mail.leaving() {
		return refuse(ErrConflict, Refusal{"status.phase", string(v1.PhaseDeleting), "is final: the proxy is being deleted"})
	}
	return nil
}

func refuse(kind string, r Refusal) error {
	text := fmt.Sprintf("%s: %q %s", r.Field, r.Value, r.Problem)
	return temporal.NewNonRetryableApplicationError(text, kind, nil, r)
}
