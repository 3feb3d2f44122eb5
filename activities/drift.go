package activities

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// Drift compares what a provider lists with what its proxies show.
type Drift struct {
	Instances *Instances
	Names     func() []string
	Fleet     Watched
	// Metrics may be nil.
	Metrics *SweepMetrics
}

// Watched is what a drift sweep asks of the fleet. The worker makes one of the fleet's client.
type Watched interface {
	// Running returns the proxies of a provider that show themselves as running.
	Running(ctx context.Context, provider string) ([]Expected, error)
	// Hint asks a proxy to look for itself. One that is gone is no error.
	Hint(ctx context.Context, e Expected, h Hint) error
}

// Expected is a running proxy as it shows itself.
type Expected struct {
	Namespace, Name, UID string
	ID, IP               string
	// SecretRef is where its user-data comes from; nil for none.
	SecretRef *v1.SecretRef
	// Made reports whether its instance was made with user-data of that digest.
	Made func(digest string) bool
}

// Hint says what a sweep noticed about one proxy.
type Hint struct {
	Proxy  string `json:"proxy"` // namespace/name
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Secret bool   `json:"secret,omitempty"` // its user-data has changed
	Error  string `json:"error,omitempty"`  // it could not be told
}

// DriftReport is what one sweep saw. Unlisted counts the hints that are not listed.
type DriftReport struct {
	Provider string   `json:"provider"`
	Running  int      `json:"running"`
	Listed   int      `json:"listed"`
	Omitted  []string `json:"omitted,omitempty"`
	Hinted   int      `json:"hinted"`
	Hints    []Hint   `json:"hints,omitempty"`
	Unlisted int      `json:"unlisted,omitempty"`
}

// DriftInput says which provider to look at. A plan gives no hint.
type DriftInput struct {
	Provider string `json:"provider"`
	Plan     bool   `json:"plan,omitempty"`
}

// SweepDrift lists a provider once and gives a hint to every proxy whose instance is
// not as it shows it. The proxies are asked for first: one that is made meanwhile is
// not missed.
func (d *Drift) SweepDrift(ctx context.Context, in DriftInput) (DriftReport, error) {
	return call(ctx, d.Instances, in.Provider, func(ctx context.Context, p providers.Provider) (DriftReport, error) {
		running, err := d.Fleet.Running(ctx, in.Provider)
		if err != nil {
			return DriftReport{}, fmt.Errorf("listing the running proxies: %w", err)
		}
		all, err := listed(ctx, in.Provider, p)
		if err != nil {
			return DriftReport{}, err
		}
		r := DriftReport{Provider: in.Provider, Running: len(running), Listed: len(all.Instances)}
		r.Omitted = someOf(all.Omitted)
		noticed, budget := drifted(running, all), ReportBudget()
		for i, e := range running {
			if noticed[i].Reason == "" {
				noticed[i] = d.secretOf(in.Provider, e)
			}
			if h := noticed[i]; h.Reason != "" {
				r.note(&budget, d.tell(ctx, e, h, in.Plan))
			}
		}
		if !in.Plan {
			d.Metrics.succeed("drift-sweep", in.Provider)
		}
		return r, nil
	})
}

// tell gives a hint, unless it is only planned.
func (d *Drift) tell(ctx context.Context, e Expected, h Hint, plan bool) Hint {
	if plan {
		return h
	}
	if err := d.Fleet.Hint(ctx, e, h); err != nil {
		h.Error = cutTo(err.Error(), proofKept)
	}
	providers.Logger(ctx).Info("drift noticed", slog.String("proxy", h.Proxy), slog.String("id", h.ID),
		slog.String("reason", h.Reason), slog.String("error", h.Error))
	return h
}

func (r *DriftReport) note(b *Budget, h Hint) {
	r.Hinted++
	kept := Take(b, []Hint{h})
	r.Hints = append(r.Hints, kept...)
	r.Unlisted = r.Hinted - len(r.Hints)
}

// secretOf notices that a proxy's user-data is not what its instance was made with. A
// secret that cannot be read is nothing to act on here.
func (d *Drift) secretOf(provider string, e Expected) Hint {
	if e.SecretRef == nil {
		return Hint{}
	}
	content, err := d.Instances.readSecret(provider, *e.SecretRef)
	if err != nil || e.Made(v1.Digest(content)) {
		return Hint{}
	}
	return Hint{
		Proxy: e.Namespace + "/" + e.Name, ID: e.ID, Secret: true,
		Reason: fmt.Sprintf("secret %s/%s has another content", e.SecretRef.Name, e.SecretRef.Key),
	}
}

// drifted says for every proxy what a listing shows against it; an empty reason for
// nothing. It is pure.
func drifted(running []Expected, all providers.Inventory) []Hint {
	byID := make(map[string]providers.Instance, len(all.Instances))
	for _, i := range all.Instances {
		byID[i.ID] = i
	}
	omitted := omissionOf(running, all)
	out := make([]Hint, len(running))
	for i, e := range running {
		inst, found := byID[e.ID]
		reason := ""
		switch {
		case found:
			reason = differs(e, inst)
		case !omitted(e.ID):
			reason = "is not listed"
		}
		if reason != "" {
			out[i] = Hint{Proxy: e.Namespace + "/" + e.Name, ID: e.ID, Reason: reason}
		}
	}
	return out
}

// differs says what is wrong with an instance that a proxy shows as running. A listing
// may fill in neither state nor address.
func differs(e Expected, inst providers.Instance) string {
	switch {
	case inst.UID != "" && inst.UID != e.UID:
		return "is listed with another UID"
	case inst.Deleting:
		return "is being deleted"
	case inst.State != "" && inst.State != providers.StateRunning && inst.State != providers.StateProvisioning:
		return cutTo("is "+string(inst.State), proofKept)
	case inst.State == providers.StateRunning && inst.IP != "" && inst.IP != e.IP:
		return "has another address"
	default:
		return ""
	}
}

// omissionOf reports which IDs a partial listing says nothing about: those that an
// entry of Omitted names, alone or by their location. Where an entry names nothing that
// is known, it may mean anything.
func omissionOf(running []Expected, all providers.Inventory) func(id string) bool {
	within := func(entry, id string) bool { return id == entry || strings.HasPrefix(id, entry+"/") }
	for _, entry := range all.Omitted {
		known := slices.ContainsFunc(running, func(e Expected) bool { return within(entry, e.ID) }) ||
			slices.ContainsFunc(all.Instances, func(i providers.Instance) bool { return within(entry, i.ID) })
		if !known {
			return func(string) bool { return true }
		}
	}
	return func(id string) bool {
		return slices.ContainsFunc(all.Omitted, func(entry string) bool { return within(entry, id) })
	}
}
