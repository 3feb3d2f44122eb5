package server

import (
	"context"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// Fleet is what the server asks; starter/fleet has it. Errors are those of
// starter/fleet or a *v1.FieldError; anything else is a fault of the fleet.
// Every method returns soon after its context has ended.
type Fleet interface {
	// Apply makes the Proxy wanted; created says that there was none. Calls with the
	// same requestID have one effect. A redacted cloud-init in the spec means the one
	// that is there.
	Apply(
		ctx context.Context, p v1.Proxy, r fleet.Request,
	) (applied v1.Proxy, created bool, err error)
	// Get returns a Proxy, or fleet.ErrNotFound.
	Get(ctx context.Context, namespace, name string) (v1.Proxy, error)
	// Delete begins to delete a Proxy and returns it, or fleet.ErrNotFound. Reason is
	// shown to people.
	Delete(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	// LeaveBehind ends a Proxy as Delete does, and leaves what is at its backend.
	LeaveBehind(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	// Replace, Retry, Hold and Resume return the Proxy as it is now, or
	// fleet.ErrNotFound. Calls with the same requestID have one effect.
	Replace(
		ctx context.Context, namespace, name, reason string, r fleet.Request,
	) (v1.Proxy, error)
	Retry(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	Hold(
		ctx context.Context, namespace, name string, h v1.Hold, r fleet.Request,
	) (v1.Proxy, error)
	Resume(ctx context.Context, namespace, name, reason string, r fleet.Request) (v1.Proxy, error)
	// Timeline returns the last events, the newest last, or fleet.ErrNotFound.
	Timeline(ctx context.Context, namespace, name string) ([]v1.Event, error)
	// List returns the Proxies of a namespace in any order; "" is every namespace. An
	// error means that the list is unknown, never that it is empty.
	List(ctx context.Context, namespace string) ([]v1.Proxy, error)
	// Follow returns the Proxies of every namespace, as List does, for who asks all the time.
	// What has the same revision as before is the same.
	Follow(ctx context.Context) (fleet.Living, error)
	// LastChecks returns what the last round of checks found, by the provider's name, and
	// when that was.
	LastChecks(ctx context.Context) (time.Time, map[string]v1.ProviderCheck, error)
	// LastCollection returns what the last collection of orphans came to.
	LastCollection(ctx context.Context) (v1.Collection, error)
	// SendFeedback and Bans are what feedback.Fleet says.
	SendFeedback(ctx context.Context, b fleet.FeedbackBatch) error
	Bans(ctx context.Context, known int64) (fleet.Bans, error)
	// Ready returns nil when Temporal answers.
	Ready(ctx context.Context) error
}
