// Package hands lets activities ask the fleet: they declare what they need and must not
// import it. The worker puts these in, and so do suites that play a worker. It knows
// activities and the fleet's client. Start reading at Owners.
package hands

import (
	"context"
	"errors"
	"fmt"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

var (
	_ activities.Owners   = Owners{}
	_ activities.Adopters = Adopters{}
	_ activities.Watched  = Watched{}
	_ activities.Probed   = Probed{}
	_ activities.Judged   = Judged{}
)

// Owners is what a sweep for orphans asks.
type Owners struct{ *fleet.Client }

// Owner reads the workflow of an owner.
func (o Owners) Owner(ctx context.Context, owner, uid string) (activities.OwnerState, error) {
	state, err := o.Client.Owner(ctx, owner, uid)
	return activities.OwnerState(state), err
}

// Adopters is what an adoption asks.
type Adopters struct{ *fleet.Client }

// Owner reads the workflow of an owner.
func (a Adopters) Owner(ctx context.Context, owner, uid string) (activities.OwnerState, error) {
	return Owners(a).Owner(ctx, owner, uid)
}

// FromMarks returns the proxy that the marks of an instance tell of.
func (Adopters) FromMarks(m activities.Marked) (v1.Proxy, error) {
	return fleet.FromMarks(fleet.Marked(m))
}

// Adopt starts it.
func (a Adopters) Adopt(ctx context.Context, m activities.Marked) error {
	err := a.Client.Adopt(ctx, fleet.Marked(m))
	if errors.Is(err, fleet.ErrConflict) {
		return fmt.Errorf("%w: %w", activities.ErrOwned, err)
	}
	return err
}

// Watched is what a drift sweep asks.
type Watched struct{ *fleet.Client }

// Running returns the proxies of a provider that show themselves as running.
func (w Watched) Running(ctx context.Context, provider string) ([]activities.Expected, error) {
	running, err := w.Client.Running(ctx, provider)
	out := make([]activities.Expected, len(running))
	for i, p := range running {
		hash, spec := p.Status.SpecHash, p.Spec // and not the whole proxy, for as long as the sweep takes
		out[i] = activities.Expected{
			Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID,
			ID: p.Status.ProviderID, IP: p.Status.IP, SecretRef: p.Spec.CloudInit.SecretRef,
			Made: func(digest string) bool { return proxy.MadeFrom(hash, spec, digest) },
		}
	}
	return out, err
}

// Hint asks a proxy to look for itself.
func (w Watched) Hint(ctx context.Context, e activities.Expected, h activities.Hint) error {
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: e.Namespace, Name: e.Name}}
	return w.Client.Hint(ctx, p, proxy.Hint{Reason: "drift: " + h.Reason, Secret: h.Secret})
}

// Probed is what a health round and the check for open proxies ask.
type Probed struct{ *fleet.Client }

// Report tells a proxy a verdict.
func (f Probed) Report(ctx context.Context, p v1.Proxy, r activities.HealthReport) error {
	return f.Client.Report(ctx, p, proxy.HealthReport{
		Healthy: r.Healthy, Undecided: r.Undecided, Reason: r.Reason, Message: r.Message, EgressIP: r.EgressIP,
	})
}

// ReportOpenProxy tells a proxy what a stranger meets at it.
func (f Probed) ReportOpenProxy(ctx context.Context, p v1.Proxy, o probe.Openness) error {
	return f.Client.ReportOpenProxy(ctx, p, proxy.OpenProxyReport{
		Status: o.Status, Reason: o.Reason, Message: o.Text,
	})
}

// Replace leaves alone what has another instance by now, or none, or is gone.
func (f Probed) Replace(ctx context.Context, p activities.Failing, reason, request string) (asked bool, err error) {
	_, err = f.ReplaceInstance(ctx, p.Namespace, p.Name, request, proxy.ReplaceInput{
		Reason: reason, Of: proxy.Subject{UID: p.UID, CreatedAt: p.MadeAt},
	})
	return answered(err)
}

// Judged is what feedback asks.
type Judged struct{ *fleet.Client }

// Proxies lists the living proxies of a provider.
func (j Judged) Proxies(ctx context.Context, provider string) ([]v1.Proxy, error) {
	return j.OfProvider(ctx, provider)
}

// Hold leaves alone what has another instance by now, is held by somebody, or is gone.
func (j Judged) Hold(ctx context.Context, a activities.Accused, h v1.Hold, request string) (bool, error) {
	of := v1.Proxy{
		Metadata: v1.Metadata{Namespace: a.Namespace, Name: a.Name, UID: a.UID},
		Status:   v1.ProxyStatus{InstanceCreatedAt: a.MadeAt},
	}
	_, err := j.HoldInstance(ctx, of, h, request)
	return answered(err)
}

// Replace leaves alone what has another instance by now, or none, or is gone.
func (j Judged) Replace(ctx context.Context, a activities.Accused, reason, request string) (bool, error) {
	_, err := j.ReplaceInstance(ctx, a.Namespace, a.Name, request, proxy.ReplaceInput{
		Reason: reason, Of: proxy.Subject{UID: a.UID, CreatedAt: a.MadeAt},
	})
	return answered(err)
}

// answered reads what a proxy answered that may not be what it was.
func answered(err error) (bool, error) {
	if _, conflict := errors.AsType[*fleet.ConflictError](err); conflict || errors.Is(err, fleet.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
