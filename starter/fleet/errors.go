package fleet

import (
	"errors"
	"fmt"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// What can be wrong with a call, for errors.Is. A *v1.FieldError says that the
// input cannot be right; everything else is a fault of the fleet itself.
var (
	// ErrNotFound: there is no such Proxy, or it is gone.
	ErrNotFound = errors.New("no such proxy")
	// ErrConflict: the Proxy there is does not allow it, now or ever.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable: Temporal, or every worker, cannot be reached. Trying again helps.
	ErrUnavailable = errors.New("the fleet is unavailable")
	// ErrNoSchedule: there is no such schedule. A worker makes them at its start.
	ErrNoSchedule = errors.New("there is no such schedule: a worker makes it at its start")
	// ErrNoRun: of the runs that are kept, none has ended well.
	ErrNoRun = errors.New("no run that is kept has ended well")
	// ErrNoWorker is an ErrUnavailable where the server answers and no worker does. What
	// was asked for may stand with the server already.
	ErrNoWorker = fmt.Errorf("%w: no worker answers", ErrUnavailable)
)

// ConflictError is an ErrConflict about one field.
type ConflictError struct {
	Field, Value, Problem string
}

// Error names the field, the value and what stands against it.
func (e *ConflictError) Error() string { return e.Field + ": \"" + e.Value + "\" " + e.Problem }

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// LeftError says that a proxy has ended and what may still be at its backend, because
// somebody wanted it so.
type LeftError struct {
	Proxy  v1.Proxy // as it was shown in the end; empty where that cannot be read
	Left   string   // "instance x on provider y"
	Reason string   // why it was left
}

// Error names what is left and why.
func (e *LeftError) Error() string {
	return e.Left + " is left behind, not verified (" + e.Reason + ")"
}

// FirstRunError is an ErrNoRun that says nothing bad: the first run of a schedule is due
// at a time that is still to come, or has just begun.
type FirstRunError struct {
	Schedule string
	At       time.Time
}

func (e *FirstRunError) Error() string {
	return fmt.Sprintf("schedule %s: the first run is that of %s", e.Schedule, e.At.UTC().Format(time.RFC3339))
}

// Is makes it an ErrNoRun.
func (e *FirstRunError) Is(target error) bool { return target == ErrNoRun }
