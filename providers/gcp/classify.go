package gcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/egressfleet/egressfleet/providers"
)

// fault is an error whose class was decided where it arose.
type fault struct {
	class providers.Class
	error
}

func (f *fault) Unwrap() error { return f.error }

func permanent(format string, args ...any) error {
	return &fault{providers.ErrPermanent, fmt.Errorf(format, args...)}
}

func transient(format string, args ...any) error {
	return &fault{providers.ErrTransient, fmt.Errorf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &fault{providers.ErrNotFound, fmt.Errorf(format, args...)}
}

// errSlow is the cause of a call that took longer than callTimeout.
var errSlow = errors.New("Compute Engine did not answer within callTimeout") //nolint:staticcheck // it is a name

// about says what a call is about, without which an answer cannot be read: of a create,
// what is missing is something else, and of anything, only the named resource is it.
type about struct {
	op   string // one of the Op constants, or opCheck
	path string // of the resource, such as zones/z/instances/n; "" for a list
}

// opCheck is the word for a check in lines of the log.
const opCheck = "check"

// classify gives every error its class; what is unknown is Transient. It reads status,
// reasons and the code of an operation, never a text but for the resource that is named.
// Contract §5; testdata has what was captured.
func classify(err error, of about) providers.Class {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.class
	}
	if f, ok := errors.AsType[*failedOperation](err); ok {
		return classOf(f.status, []string{f.code})
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errSlow) {
		return providers.ErrTransient
	}
	e, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		return providers.ErrTransient // a connection, a proxy, a cut-off answer
	}
	if e.Code == http.StatusNotFound {
		return classOfMissing(e, of)
	}
	return classOf(e.Code, reasons(e))
}

// classOfMissing tells the instance that is gone from all else that can be missing: a
// project, a zone, an image, an operation that was forgotten, or the API itself behind
// another server's page.
func classOfMissing(e *googleapi.Error, of about) providers.Class {
	what := reasons(e)
	switch {
	case len(what) == 0 && e.Message == "":
		return providers.ErrTransient // no answer of Compute Engine
	case of.op == providers.OpCreate:
		return providers.ErrPermanent // something that the request names
	case of.path != "" && names(e.Message, of.path):
		return providers.ErrNotFound
	case strings.Contains(e.Message, "/operations/"):
		return providers.ErrTransient
	case namesAny(e.Message):
		return providers.ErrPermanent // a project or a zone
	}
	return providers.ErrTransient
}

// names reports whether a message is about a resource. Projects have two names, so the
// path begins after them.
func names(message, path string) bool {
	_, rest, found := strings.Cut(message, "/"+path)
	return found && !strings.ContainsFunc(rest[:min(1, len(rest))], partOfPath)
}

func partOfPath(r rune) bool {
	return r == '-' || r == '/' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z'
}

// namesAny reports whether a message is about a resource at all.
func namesAny(message string) bool { return strings.Contains(message, "projects/") }

// classOf reads the reasons first: a 403 stands for a right that is missing as well as
// for a quota, a 503 for a server that is ill as well as for a zone that is full.
func classOf(status int, why []string) providers.Class {
	class := byStatus(status)
	for _, reason := range why {
		switch byReason(reason) {
		case providers.ErrQuotaExceeded:
			return providers.ErrQuotaExceeded
		case providers.ErrTransient:
			class = providers.ErrTransient
		case providers.ErrPermanent:
			if status == 0 { // an operation may have a code and no status
				class = providers.ErrPermanent
			}
		case providers.ErrNotFound:
		}
	}
	return class
}

// byStatus is the class of an answer without a reason.
func byStatus(status int) providers.Class {
	switch status {
	case http.StatusTooManyRequests:
		return providers.ErrQuotaExceeded
	case http.StatusRequestTimeout, http.StatusConflict:
		return providers.ErrTransient
	}
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return providers.ErrPermanent
	}
	return providers.ErrTransient
}

// scarce are parts of reasons that mean "no more of it now".
var scarce = []string{
	"quotaexceeded", "ratelimitexceeded", "rateexceeded", "limitexceeded", "exhausted", "stockout",
	"insufficientcapacity", "insufficientresources", "toomanyrequests",
}

// passing are reasons of what clears by itself, whatever the status says.
var passing = []string{
	"resourcenotready", "resourceinusebyanotherresource", "resourceinuse", "resourcebeingused",
	"backenderror", "internalerror", "internal", "unavailable", "serviceunavailable", "aborted",
	"deadlineexceeded", "timeout", "operationcanceledbyuser", "resourcealreadyexists", "alreadyexists",
}

// refusing are parts of reasons that mean "not like this".
var refusing = []string{
	"invalid", "notfound", "permission", "forbidden", "conditionnotmet", "constraint", "policy", "unsupported",
	"badrequest", "required", "toolarge", "disabled",
}

// byReason is the class that a reason gives whatever the status; "" when it gives none.
func byReason(reason string) providers.Class {
	word := plain(reason)
	if word == "dailylimitexceededunreg" { // no project was named: a mistake, and no quota
		return providers.ErrPermanent
	}
	for _, part := range scarce {
		if strings.Contains(word, part) {
			return providers.ErrQuotaExceeded
		}
	}
	for _, known := range passing {
		if word == known {
			return providers.ErrTransient
		}
	}
	for _, part := range refusing {
		if strings.Contains(word, part) {
			return providers.ErrPermanent
		}
	}
	return ""
}

// plain makes quotaExceeded and QUOTA_EXCEEDED the same word.
func plain(reason string) string {
	return strings.ToLower(strings.ReplaceAll(reason, "_", ""))
}

// isStockout reports whether a zone has no capacity, so that another one may have.
func isStockout(err error) bool {
	var why []string
	if f, ok := errors.AsType[*failedOperation](err); ok {
		why = []string{f.code}
	} else if e, ok := errors.AsType[*googleapi.Error](err); ok {
		why = reasons(e)
	}
	for _, reason := range why {
		if word := plain(reason); strings.Contains(word, "resourcepoolexhausted") || strings.Contains(word, "stockout") {
			return true
		}
	}
	return false
}

// isTaken reports whether a name is held already.
func isTaken(err error) bool {
	e, ok := errors.AsType[*googleapi.Error](err)
	return ok && e.Code == http.StatusConflict
}
