package main

import (
	"cmp"
	"context"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// schedules are the workflows that run by themselves, as often as it is configured;
// the second prober has one more.
func schedules(every config.Intervals) []fleet.Schedule {
	gc, drift, check := fleet.OrphanGC(), fleet.DriftSweep(), fleet.ProviderCheck()
	gc.Every = cmp.Or(every.GC, gc.Every)
	drift.Every = cmp.Or(every.Drift, drift.Every)
	check.Every = cmp.Or(every.Check, check.Every)
	return []fleet.Schedule{gc, drift, check, fleet.HealthRound()}
}

// sweeps are the hands of the scheduled workflows.
func (p *process) sweeps(instances *activities.Instances) []any {
	metrics := activities.NewSweepMetrics(p.registry)
	return []any{
		&activities.Orphans{Instances: instances, Names: p.providers.Names, Owners: owners{p.fleet}, Metrics: metrics},
		p.prober(instances),
		&activities.OpenProxies{
			Fleet: probed{p.fleet}, Names: p.providers.Names, TargetOf: p.targetOf,
			Metrics: activities.NewOpenProxyMetrics(p.registry),
		},
		&activities.Checks{
			Lookup: p.providers.Lookup, Names: p.providers.Names, Metrics: activities.NewCheckMetrics(p.registry),
		},
		&activities.Drift{Instances: instances, Names: p.providers.Names, Fleet: watched{p.fleet}, Metrics: metrics},
	}
}

// owners lets activities ask the fleet, which they must not import.
type owners struct{ *fleet.Client }

func (o owners) Owner(ctx context.Context, owner, uid string) (activities.OwnerState, error) {
	state, err := o.Client.Owner(ctx, owner, uid)
	return activities.OwnerState(state), err
}

// watched lets a drift sweep ask the fleet.
type watched struct{ *fleet.Client }

func (w watched) Running(ctx context.Context, provider string) ([]activities.Expected, error) {
	running, err := w.Client.Running(ctx, provider)
	out := make([]activities.Expected, len(running))
	for i, p := range running {
		out[i] = activities.Expected{
			Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID,
			ID: p.Status.ProviderID, IP: p.Status.IP, SecretRef: p.Spec.CloudInit.SecretRef,
			Made: func(digest string) bool { return fleet.MadeFrom(p, digest) },
		}
	}
	return out, err
}

func (w watched) Hint(ctx context.Context, e activities.Expected, h activities.Hint) error {
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: e.Namespace, Name: e.Name}}
	return w.Client.Hint(ctx, p, proxy.Hint{Reason: "drift: " + h.Reason, Secret: h.Secret})
}
