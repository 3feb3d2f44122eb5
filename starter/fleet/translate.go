package fleet

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// translate turns what Temporal says into the errors of this room.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return refused(app)
	}
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	_, timedOut := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	_, deadline := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, exhausted := errors.AsType[*serviceerror.ResourceExhausted](err)
	_, unreachable := errors.AsType[*serviceerror.QueryFailed](err)
	if timedOut || unavailable || deadline || exhausted || unreachable ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: no answer from the server or from a worker in time: %w", ErrUnavailable, err)
	}
	return err
}

// refused reads the refusal that a Proxy workflow sent.
func refused(app *temporal.ApplicationError) error {
	var r proxy.Refusal
	if !app.HasDetails() || app.Details(&r) != nil {
		return app
	}
	switch app.Type() {
	case proxy.ErrInvalid:
		return &v1.FieldError{Field: r.Field, Value: r.Value, Problem: r.Problem}
	case proxy.ErrConflict:
		return &ConflictError{Field: r.Field, Value: r.Value, Problem: r.Problem}
	default:
		return app
	}
}
