package providers

import (
	"errors"
	"fmt"
)

// Class says what a caller does about an error. It is itself an error, so that
// errors.Is(err, ErrNotFound) reads as it should.
type Class string

// The four classes; docs/provider-contract.md says what each caller does. Contract §5.
const (
	ErrNotFound      Class = "NotFound"      // the instance is gone; only Get says so
	ErrQuotaExceeded Class = "QuotaExceeded" // no quota, no capacity, rate limited
	ErrTransient     Class = "Transient"     // may pass by itself; everything unknown
	ErrPermanent     Class = "Permanent"     // only another spec or configuration helps
)

// Error returns the class's name.
func (c Class) Error() string { return string(c) }

// Classes lists every class, in the order of the contract.
func Classes() []Class {
	return []Class{ErrNotFound, ErrQuotaExceeded, ErrTransient, ErrPermanent}
}

// The operations that an Error names.
const (
	OpCreate = "create"
	OpGet    = "get"
	OpDelete = "delete"
	OpList   = "list"

	OpPrepare = "prepare" // of a Preparer
)

// Error is the only error type that a provider returns. Its text reaches users:
// it holds no credential and no cloud-init.
type Error struct {
	Class    Class
	Op       string // one of the Op constants
	Provider string // the configured name, not the type
	ID       string // the instance, where there is one
	Err      error  // the backend's own error
}

// Wrap returns err as an *Error of a class. Contract §5.
func Wrap(class Class, op, provider, id string, err error) error {
	return &Error{Class: class, Op: op, Provider: provider, ID: id, Err: err}
}

// Error names the operation, the instance and the class before the backend's words.
func (e *Error) Error() string {
	if e.ID == "" {
		return fmt.Sprintf("%s: %s: %s: %v", e.Provider, e.Op, e.Class, e.Err)
	}
	return fmt.Sprintf("%s: %s %s: %s: %v", e.Provider, e.Op, e.ID, e.Class, e.Err)
}

// Unwrap keeps both the class and the backend's error within reach of errors.Is
// and errors.As.
func (e *Error) Unwrap() []error { return []error{e.Class, e.Err} }

// ClassOf returns the class of an error; ErrTransient for whatever has none, and
// the empty class for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ErrTransient
}

// IsCreateFailed reports whether a Get error tells of a create that was accepted
// and failed later, rather than of a read that failed.
func IsCreateFailed(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Op == OpCreate
}

// Holder is who an instance belongs to.
type Holder struct{ UID, Installation string }

// ForeignError is the cause of an ErrPermanent from Create: the name is held by an
// instance of another UID or installation. It is never adopted.
type ForeignError struct{ Found, Wanted Holder }

// Error names both holders.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("the name is held by UID %q of installation %q, and is wanted for UID %q of installation %q",
		e.Found.UID, e.Found.Installation, e.Wanted.UID, e.Wanted.Installation)
}

// LeftBehindError is the cause of an ErrPermanent from Delete: the place of the instance has
// left the configuration, so nothing there can be asked or removed. The workflow ends and
// names what is left; orphan collection takes it once the place is configured again.
type LeftBehindError struct{ Place string }

// Error names the place and says what to do.
func (e *LeftBehindError) Error() string {
	return fmt.Sprintf("%s is not configured any more: what is there is left behind, and is collected once it is "+
		"configured again", e.Place)
}
