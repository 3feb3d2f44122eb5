package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egressfleet/egressfleet/starter/fleet"
)

const (
	// lookAtPlanned is between two looks at the schedules, lookWithin bounds one.
	lookAtPlanned = 15 * time.Second
	lookWithin    = 10 * time.Second
)

// planned are the figures of the schedules as Temporal has them: whichever worker took
// a run, and whether any worker is there at all. The role api looks at them.
type planned struct {
	ids   []string
	state func(ctx context.Context, schedule string) (fleet.ScheduleState, error)
	log   *slog.Logger

	mu    sync.Mutex
	known map[string]fleet.ScheduleState // by ID; what was never seen, or is gone, is not in it
}

var (
	lastSuccessDesc = prometheus.NewDesc("egressfleet_schedule_last_success_timestamp_seconds",
		"When a run that a schedule began last ended well, as Temporal has it, in seconds since 1970; where none is kept, "+
			"when the schedule was made.",
		[]string{"schedule"}, nil)
	intervalDesc = prometheus.NewDesc("egressfleet_schedule_interval_seconds",
		"How often a schedule runs.", []string{"schedule"}, nil)
	pausedDesc = prometheus.NewDesc("egressfleet_schedule_paused",
		"1 while somebody has paused a schedule.", []string{"schedule"}, nil)
)

// newPlanned returns figures of every schedule that there can be. Those of a schedule
// that is not there are not shown.
func newPlanned(
	state func(context.Context, string) (fleet.ScheduleState, error), log *slog.Logger,
) *planned {
	p := &planned{state: state, log: log, known: map[string]fleet.ScheduleState{}}
	for _, s := range []fleet.Schedule{
		fleet.OrphanGC(), fleet.DriftSweep(), fleet.ProviderCheck(), fleet.HealthRound(), fleet.OpenProxyCheck(),
	} {
		p.ids = append(p.ids, s.ID)
	}
	return p
}

// run looks at once and then every period, until ctx ends.
func (p *planned) run(ctx context.Context) error {
	ticks := time.NewTicker(lookAtPlanned)
	defer ticks.Stop()
	for {
		p.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// look asks for all of them. Who cannot be asked for is as he was: what is not known to
// have succeeded gets older by itself.
func (p *planned) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	for _, id := range p.ids {
		state, err := p.state(ctx, id)
		p.mu.Lock()
		switch {
		case err == nil:
			p.known[id] = state
		case errors.Is(err, fleet.ErrNoSchedule):
			delete(p.known, id)
		default:
			p.log.Debug("a schedule cannot be looked at", slog.String("schedule", id), slog.String("error", err.Error()))
		}
		p.mu.Unlock()
	}
}

// Describe names what Collect tells.
func (p *planned) Describe(out chan<- *prometheus.Desc) {
	out <- lastSuccessDesc
	out <- intervalDesc
	out <- pausedDesc
}

// Collect tells what the last look saw; nobody is asked.
func (p *planned) Collect(out chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.known {
		tell := func(desc *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, id)
		}
		tell(lastSuccessDesc, secondsOf(cmp.Or(s.LastSuccess, s.Made)))
		tell(intervalDesc, s.Every.Seconds())
		tell(pausedDesc, map[bool]float64{true: 1}[s.Paused])
	}
}

func secondsOf(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }

// watchSchedules lets the figures be looked for as long as the process lives.
func (p *process) watchSchedules(ctx context.Context) error {
	all := newPlanned(p.fleet.ScheduleState, p.log)
	p.registry.MustRegister(all)
	p.onStop(p.background(ctx, "schedules", all.run))
	return nil
}
