package main

import (
	"time"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/providercheck"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// faster is how much quicker than in production the fleet lives: two minutes are an hour.
const faster = 30

const (
	gcEvery     = gc.Interval / faster     // 20 s
	driftEvery  = drift.Interval / faster  // 4 s
	healthEvery = health.Interval / faster // 2 s
	minAge      = activities.MinAge / faster
	// replaceAfter is how long each proxy may be unhealthy: six minutes of that hour.
	replaceAfter = 6 * time.Minute / faster

	// spread is the part of an interval by which a schedule may be late on purpose.
	spread = 10
	// unhurried is what runs at its own speed: the pause of some seconds before a NotFound
	// is believed is a constant of the workflow, and schedules, signals and a batch of
	// probes take the time that they take, on a busy machine, too.
	unhurried = 5 * time.Second
)

// limits are what the measured times may be.
type limits struct{ Drift, Health, Orphan time.Duration }

// allowed is one interval, late by its spread, and half a minute of the hour for the
// look that follows; for health, the pauses between the tries of a round, too. An orphan
// has to be gone when it is old enough and two intervals are over.
func allowed() limits {
	t := thresholds()
	return limits{
		Drift:  driftEvery + driftEvery/spread + 30*time.Second/faster + unhurried,
		Health: healthEvery + healthEvery/spread + (time.Duration(t.Fall-1) * t.Pause).Round(second/10) + unhurried,
		Orphan: minAge + 2*gcEvery,
	}
}

func thresholds() probe.Thresholds {
	t := probe.DefaultThresholds()
	t.Pause /= faster
	return t
}

// schedules are those of production, only sooner.
func schedules() []fleet.Schedule {
	all := []fleet.Schedule{fleet.OrphanGC(), fleet.DriftSweep(), fleet.HealthRound(), fleet.ProviderCheck()}
	every := map[string]time.Duration{
		gc.Schedule: gcEvery, drift.Schedule: driftEvery, health.Schedule: healthEvery,
		providercheck.Schedule: max(time.Second, providercheck.Interval/faster),
	}
	for i := range all {
		all[i].Every = every[all[i].ID]
	}
	all[0].Input = gc.Input{MinAge: minAge}
	return all
}

// timing is the production timing, faster. The proxies themselves look at a running
// instance once an hour of the machine's clock: what is noticed is noticed by a sweep.
func timing() proxy.Timing {
	t := proxy.DefaultTiming().WithSteadyPoll(time.Hour)
	t.Busy = proxy.Pace{Poll: time.Second, Max: time.Second, Lease: 10 * time.Second}
	t.Retry = proxy.Pace{Poll: time.Second, Max: 4 * time.Second, Lease: time.Minute}
	t.Quota = proxy.Pace{Poll: 10 * time.Second, Max: 10 * time.Second, Lease: time.Minute}
	// A call gives up within an outage, as it does in production.
	t.Create = activities.Limits{Attempt: t.Create.Attempt / faster, Total: t.Create.Total / faster}
	t.Call = activities.Limits{Attempt: 3 * time.Second, Total: t.Call.Total / faster}
	t.Look = activities.Limits{Attempt: t.Look.Attempt / faster, Total: t.Look.Total / faster}
	t.Outlast /= faster
	return t
}
