package fake

import (
	"context"
	"errors"
	"net/http"

	"github.com/egressfleet/egressfleet/providers"
)

// The codes of the backend's errors.
const (
	codeGone        = "E_NO_INSTANCE"
	codeExists      = "E_EXISTS"
	codeFull        = "E_NO_CAPACITY"
	codeLocked      = "E_LOCKED"
	codeDying       = "E_DYING"
	codeUnreachable = "E_UNREACHABLE"
	codeDenied      = "E_DENIED"
	codeOther       = "E_NO_ROUTE"
	codeLag         = "E_NOT_SEEN"
)

const resource = "instance"

func errGone(name string) error {
	return &BackendError{http.StatusNotFound, codeGone, resource, "no such instance " + name}
}

func errExists(name string) error {
	return &BackendError{http.StatusConflict, codeExists, resource, "the name or the key of " + name + " is taken"}
}

func errFull() error {
	return &BackendError{http.StatusTooManyRequests, codeFull, resource, "no capacity: INSTANCES 8 of 8"}
}

func errLocked(name string) error {
	return &BackendError{http.StatusLocked, codeLocked, resource, name + " is locked by a task"}
}

func errDying(name string) error {
	return &BackendError{http.StatusConflict, codeDying, resource, name + " is still being deleted"}
}

func errUnreachable(at string) error {
	return &BackendError{http.StatusBadGateway, codeUnreachable, "location", at + " does not answer"}
}

func errDenied() error {
	return &BackendError{http.StatusUnauthorized, codeDenied, "credential", "it is not accepted"}
}

// errOther looks like errGone to whoever reads the status or the words only.
func errOther(status int) error {
	return &BackendError{status, codeOther, "route", "not found, no such instance of a route"}
}

// classified returns err as the contract wants it. An *Error knows its class, though
// it may not know the operation.
func (p *Provider) classified(at target, err error) error {
	e, ok := errors.AsType[*providers.Error](err)
	switch {
	case !ok:
		return p.wrap(p.classOf(err), at.op, at.id, err)
	case e.Op == "":
		return p.wrap(e.Class, at.op, at.id, e.Err)
	default:
		return e
	}
}

// classOf is the one place where the backend's words get a class.
func (p *Provider) classOf(err error) providers.Class {
	if errors.Is(err, errUnreadable) || errors.Is(err, errUnset) {
		return providers.ErrPermanent
	}
	said, ok := errors.AsType[*BackendError](err)
	switch {
	case !ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return providers.ErrTransient
	case p.saysGone(said):
		return providers.ErrNotFound
	case said.Code == codeFull && p.profile.Quota == providers.QuotaDetected:
		return providers.ErrQuotaExceeded
	case said.Code == codeDenied:
		return providers.ErrPermanent
	default:
		return providers.ErrTransient
	}
}

// saysGone reports whether an answer means that the instance does not exist: by its
// status, or by its code. A status alone is not enough: other things are missing, too.
func (p *Provider) saysGone(said *BackendError) bool {
	if p.profile.NotFound == providers.NotFoundStatus404 {
		return said.Status == http.StatusNotFound && said.Resource == resource
	}
	return said.Code == codeGone
}

func (p *Provider) wrap(class providers.Class, op, id string, err error) error {
	return providers.Wrap(class, op, p.name, id, err)
}

func coded(err error, code string) bool {
	said, ok := errors.AsType[*BackendError](err)
	return ok && said.Code == code
}
