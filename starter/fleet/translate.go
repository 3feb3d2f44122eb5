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
	if isAny[*serviceerror.NotFound](err) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	switch {
	case isAny[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err), isAny[*serviceerror.QueryFailed](err),
		isAny[*serviceerror.WorkflowNotReady](err):
		return fmt.Errorf("%w: %w", ErrNoWorker, err)
	case isAny[*serviceerror.Unavailable](err), isAny[*serviceerror.DeadlineExceeded](err),
		isAny[*serviceerror.ResourceExhausted](err), isAny[*serviceerror.FailedPrecondition](err),
		isAny[*serviceerror.NamespaceNotFound](err), isAny[*serviceerror.PermissionDenied](err),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return err
	}
}

func isAny[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
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
