package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// What feedback may lead to.
const (
	FeedbackHold    = "hold"
	FeedbackReplace = "replace"
)

// Why it leads to nothing.
const (
	RefusedBudget = "budget" // the provider's is used up for this hour
	RefusedFloor  = "floor"  // too few of the provider's proxies would be left
	RefusedGone   = "gone"   // the instance is another one, or nobody is handed it anyway
)

// Feedback acts on what clients report.
type Feedback struct {
	Fleet   Judged
	Metrics *FeedbackMetrics // may be nil
}

// Judged is what feedback asks of the fleet. The worker makes one of the fleet's client.
type Judged interface {
	// Proxies returns the living proxies of a provider.
	Proxies(ctx context.Context, provider string) ([]v1.Proxy, error)
	// Hold and Replace ask for it, once for each request. asked is false where the
	// instance is another one by now, or the proxy does not allow it: no error.
	Hold(ctx context.Context, a Accused, h v1.Hold, request string) (asked bool, err error)
	Replace(ctx context.Context, a Accused, reason, request string) (asked bool, err error)
}

// Accused is one instance of a proxy. Serialised.
type Accused struct {
	Provider  string    `json:"provider"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	MadeAt    time.Time `json:"madeAt,omitzero"`
}

// Key is namespace/name.
func (a Accused) Key() string { return a.Namespace + "/" + a.Name }

// Is reports whether both are the same instance.
func (a Accused) Is(b Accused) bool {
	return a.Key() == b.Key() && a.UID == b.UID && a.MadeAt.Equal(b.MadeAt)
}

// FeedbackLook asks how the pool stands. Serialised.
type FeedbackLook struct {
	Accused []Accused `json:"accused"`
	// Leaving are namespace/name of proxies that count as not usable, whatever is listed.
	Leaving []string `json:"leaving,omitempty"`
}

// Standing counts a provider's proxies. Serialised.
type Standing struct {
	Total  int `json:"total"`  // those that are being deleted left out
	Usable int `json:"usable"` // clients may use them
}

// FeedbackStandings is how the pool stands. Serialised.
type FeedbackStandings struct {
	Providers map[string]Standing `json:"providers,omitempty"`
	// There are the accused that clients may use still, as namespace/name.
	There []string `json:"there,omitempty"`
}

// FeedbackVerdict is what becomes of an accused. Serialised.
type FeedbackVerdict struct {
	Accused
	Do      string      `json:"do"`
	Domains int         `json:"domains"`
	Refused string      `json:"refused,omitempty"` // empty: it is done
	Reason  string      `json:"reason,omitempty"`
	For     v1.Duration `json:"for,omitempty"` // of a hold
}

// FeedbackOrder has verdicts done and told. Serialised.
type FeedbackOrder struct {
	Verdicts []FeedbackVerdict `json:"verdicts"`
	Request  string            `json:"request"`
}

// FeedbackDone says which proxies were asked.
type FeedbackDone struct {
	Asked []string `json:"asked,omitempty"`
}

// LookAtPool counts the proxies of every provider that has an accused.
func (f *Feedback) LookAtPool(ctx context.Context, in FeedbackLook) (FeedbackStandings, error) {
	out := FeedbackStandings{Providers: map[string]Standing{}}
	for _, a := range in.Accused {
		if _, known := out.Providers[a.Provider]; known {
			continue
		}
		proxies, err := f.Fleet.Proxies(ctx, a.Provider)
		if err != nil {
			return out, fmt.Errorf("listing the proxies of provider %s: %w", a.Provider, err)
		}
		var there []string
		out.Providers[a.Provider], there = standing(proxies, in)
		out.There = append(out.There, there...)
	}
	return out, nil
}

// standing counts, and finds the accused that are there. It is pure.
func standing(proxies []v1.Proxy, in FeedbackLook) (s Standing, there []string) {
	for _, p := range proxies {
		if p.Status.Phase == v1.PhaseDeleting {
			continue
		}
		s.Total++
		is := accusedOf(p)
		if _, usable := v1.EndpointOf(p); !usable || slices.Contains(in.Leaving, is.Key()) {
			continue
		}
		s.Usable++
		if slices.ContainsFunc(in.Accused, is.Is) {
			there = append(there, is.Key())
		}
	}
	return s, there
}

func accusedOf(p v1.Proxy) Accused {
	return Accused{
		Provider: p.Spec.Provider, Namespace: p.Metadata.Namespace, Name: p.Metadata.Name,
		UID: p.Metadata.UID, MadeAt: p.Status.InstanceCreatedAt,
	}
}

// ActOnFeedback holds and replaces. Each one that is asked for is a line in the audit log.
func (f *Feedback) ActOnFeedback(ctx context.Context, in FeedbackOrder) (out FeedbackDone, err error) {
	var faults []error
	for _, v := range in.Verdicts {
		if v.Refused != "" {
			f.Metrics.refused(v)
			continue
		}
		asked, err := f.do(ctx, v, in.Request)
		if err != nil { // one that cannot be asked does not keep the others waiting
			faults = append(faults, fmt.Errorf("%s: %w", v.Key(), err))
		}
		if !asked {
			continue
		}
		out.Asked = append(out.Asked, v.Key())
		f.Metrics.acted(v)
		activity.GetLogger(ctx).Info("audit", "who", "feedback", "action", v.Do, "namespace", v.Namespace, "name", v.Name,
			"provider", v.Provider, "reason", v.Reason)
	}
	if len(out.Asked) > 0 {
		return out, nil // the others come again with what is reported next
	}
	return out, errors.Join(faults...)
}

func (f *Feedback) do(ctx context.Context, v FeedbackVerdict, request string) (asked bool, err error) {
	if v.Do == FeedbackHold {
		return f.Fleet.Hold(ctx, v.Accused, v1.Hold{Reason: v.Reason, For: v.For}, request)
	}
	return f.Fleet.Replace(ctx, v.Accused, v.Reason, request)
}
