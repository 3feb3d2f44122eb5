package main

import (
	"cmp"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/worker/hands"
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

// sweeps are the hands of the scheduled workflows, and of feedback.
func (p *process) sweeps(instances *activities.Instances) []any {
	metrics := activities.NewSweepMetrics(p.registry)
	return []any{
		&activities.Orphans{
			Instances: instances, Names: p.providers.Names, Owners: hands.Owners{Client: p.fleet}, Metrics: metrics,
		},
		&activities.Adoption{Instances: instances, Fleet: hands.Adopters{Client: p.fleet}},
		p.prober(instances),
		&activities.OpenProxies{
			Fleet: hands.Probed{Client: p.fleet}, Names: p.providers.Names, TargetOf: p.targetOf,
			Metrics: activities.NewOpenProxyMetrics(p.registry),
		},
		&activities.Checks{
			Lookup: p.providers.Lookup, Names: p.providers.Names, Metrics: activities.NewCheckMetrics(p.registry),
		},
		&activities.Drift{
			Instances: instances, Names: p.providers.Names, Fleet: hands.Watched{Client: p.fleet}, Metrics: metrics,
		},
		&activities.Feedback{Fleet: hands.Judged{Client: p.fleet}, Metrics: activities.NewFeedbackMetrics(p.registry)},
	}
}
