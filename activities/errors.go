package activities

import (
	"errors"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// maxText bounds the backend's words on the wire, in bytes: they go into history,
// memo and conditions.
const maxText = 1024

// Fault is a provider's error as a workflow sees it.
type Fault struct {
	Class providers.Class `json:"class"`
	// Reason is the word for status where the class alone does not say it, such as
	// ProviderNotConfigured; otherwise empty.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text"` // the backend's own words
}

// errNotConfigured is the cause of the error about a provider that no worker knows.
var errNotConfigured = errors.New("no provider of that name is configured")

// faultFrom reads a provider's error, on the activity's side of the wire.
func faultFrom(err error) Fault {
	f := Fault{Class: providers.ClassOf(err), Text: cut(err.Error())}
	if errors.Is(err, errNotConfigured) {
		f.Reason = v1.ReasonProviderNotConfigured
	}
	if _, foreign := errors.AsType[*providers.ForeignError](err); foreign {
		f.Reason = v1.ReasonForeignInstance
	}
	if missing, ok := errors.AsType[*providers.NotPreparedError](err); ok {
		f.Reason, f.Text = v1.ReasonNotPrepared, cut(missing.What)
	}
	if _, left := errors.AsType[*providers.LeftBehindError](err); left {
		f.Reason = v1.ReasonLeftBehind
	}
	return f
}

// ToApplicationError puts a provider's error on the wire: its class becomes the
// type of the ApplicationError, because Go types do not survive the trip. Only
// ErrTransient is retried by the server, unless only a Prepare can help; quota is nothing
// to be alarmed about.
func ToApplicationError(err error) error {
	if err == nil {
		return nil
	}
	f := faultFrom(err)
	opts := temporal.ApplicationErrorOptions{
		NonRetryable: f.Class != providers.ErrTransient || f.Reason == v1.ReasonNotPrepared,
		Details:      []any{f.Reason},
	}
	if f.Class == providers.ErrQuotaExceeded || f.Reason == v1.ReasonNotPrepared {
		opts.Category = temporal.ApplicationErrorCategoryBenign
	}
	return temporal.NewApplicationErrorWithOptions(f.Text, string(f.Class), opts)
}

// FaultOf reads inside a workflow what ToApplicationError wrote. What carries no
// class (a timeout, a panic, a lost worker) is ErrTransient.
func FaultOf(err error) Fault {
	app, _ := errors.AsType[*temporal.ApplicationError](err)
	if !Classified(err) {
		return Fault{Class: providers.ErrTransient, Text: cut(rootText(err))}
	}
	f := Fault{Class: providers.Class(app.Type()), Text: app.Message()}
	if app.HasDetails() {
		_ = app.Details(&f.Reason) // details of another shape are of another version: the class is enough
	}
	return f
}

// Classified reports whether an error of an activity is a provider's, rather than a
// timeout or a lost worker, which say nothing about the backend.
func Classified(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && slices.Contains(providers.Classes(), providers.Class(app.Type()))
}

// ErrorClass returns the class that an error carries over the wire.
func ErrorClass(err error) providers.Class { return FaultOf(err).Class }

// rootText leaves out what Temporal wraps around the words that say something.
func rootText(err error) string {
	if act, ok := errors.AsType[*temporal.ActivityError](err); ok && act.Unwrap() != nil {
		return act.ActivityType().GetName() + ": " + act.Unwrap().Error()
	}
	return err.Error()
}

func cut(text string) string { return cutTo(text, maxText) }

func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
