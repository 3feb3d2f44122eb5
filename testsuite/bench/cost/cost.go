// Package cost counts what a fleet costs on a real Temporal server: history events, state
// transitions and billable actions for each proxy and day, beside a naive twin, and how
// soon drift and bad health are seen for that. The workflows are those of production with
// shorter intervals, over a backend in memory. It may import every room. Start reading at
// Part; day.go is the arithmetic, meter.go counts, seen.go is the part that takes times.
package cost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/testsuite/ports"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	most = 1000

	mostActions, mostEvents = 60, 120 // per proxy-day
	cheaper                 = 70      // times, than the twin

	scheduledRuns = 10 // of each schedule are counted
	leases        = 2  // of each proxy are counted
	within        = 15 * time.Minute
)

// Part counts a fleet in which nothing happens.
func Part() frame.Part {
	p := frame.Part{
		Name: "cost", About: "what a steady fleet costs for each proxy and day, counted on the server, beside a naive twin",
		Sizes: []int{10, 100, most}, Runs: 1, Open: open,
		Figures: []frame.Figure{
			{Name: "actions", Unit: perDay, Must: frame.AtMost(mostActions), At: most, Growth: frame.AtMost(0)},
			{Name: "events", Unit: perDay, Must: frame.AtMost(mostEvents), At: most, Growth: frame.AtMost(0)},
			{Name: "transitions", Unit: perDay, Growth: frame.AtMost(0)},
			// Beside it what ours takes.
			{Name: "actions of the twin", Unit: perDay, Must: frame.RatioAtLeast(cheaper), At: most},
			// Beside it the actions as they are billed.
			{Name: "actions, the server's counter", Unit: perDay, Must: frame.AtMost(mostActions), At: most},
		},
	}
	for _, name := range sources() {
		p.Figures = append(p.Figures,
			frame.Figure{Name: "actions: " + name, Unit: perDay}, frame.Figure{Name: "events: " + name, Unit: perDay})
	}
	return p
}

const perDay = "per proxy-day"

// The sources beside the schedules.
const (
	sourceWatch  = "watch"
	sourceNewRun = "new run"
)

// sources are what costs, in the order in which it is counted.
func sources() (names []string) {
	for _, s := range schedules() {
		names = append(names, s.ID)
	}
	return append(names, sourceNewRun, sourceWatch)
}

// schedules are those of every fleet.
func schedules() []fleet.Schedule {
	return []fleet.Schedule{fleet.OrphanGC(), fleet.DriftSweep(), fleet.ProviderCheck(), fleet.HealthRound()}
}

// scene is a fleet of so many proxies, and a worker that can be changed.
type scene struct {
	*live.Fleet

	size    int
	backend *fake.Provider
	egress  *egress
	meter   *meter
	stop    func()
}

func open(ctx context.Context, size int) (frame.Scene, error) {
	s, err := newScene(ctx, size)
	if err != nil {
		return frame.Scene{}, err
	}
	return frame.Scene{Run: s.run, Close: s.close}, nil
}

// newScene returns once all proxies run and have been found healthy.
func newScene(ctx context.Context, size int) (s *scene, err error) {
	s = &scene{
		size: size, stop: func() {},
		backend: fake.New(stage.Provider, fake.WithInstallation(live.Installation)),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.egress, err = newEgress(ctx); err != nil {
		return s, err
	}
	port, err := ports.Take()
	if err != nil {
		return s, err
	}
	if s.Fleet, err = live.Serve(ctx, "--metrics-port", strconv.Itoa(port)); err != nil {
		return s, err
	}
	s.meter = &meter{temporal: s.Temporal, port: port, ended: map[string]counts{}}
	if err := s.work(ctx, proxy.DefaultTiming()); err != nil {
		return s, err
	}
	if err := s.put(ctx); err != nil {
		return s, err
	}
	if err := s.Await(ctx, size, v1.PhaseRunning); err != nil {
		return s, err
	}
	return s, s.probe(ctx)
}

// put asks for the proxies, and again where a busy machine was too slow to answer. They
// have a day until they must be healthy: a watch that was begun before they are looks once
// more when that is over, which is no part of a steady fleet.
func (s *scene) put(ctx context.Context) error {
	spec := v1.ProxySpec{
		Provider: stage.Provider, Port: port3128, Deadlines: v1.Deadlines{FirstHealthy: v1.Duration(day.String())},
	}
	return until(ctx, func(ctx context.Context) (bool, error) {
		err := s.Put(ctx, 0, s.size, spec)
		if errors.Is(err, fleet.ErrUnavailable) {
			return false, nil
		}
		return err == nil, err
	})
}

const port3128 = 3128 // nobody listens there: egress dials for all

// work puts another worker in the place of the one that works.
func (s *scene) work(ctx context.Context, t proxy.Timing) (err error) {
	s.stop()
	s.stop, err = live.Work(ctx, s.Temporal, live.Options{
		Backends: map[string]providers.Provider{stage.Provider: s.backend}, Timing: t, Health: s.egress.health(),
	})
	return err
}

// probe runs one health round, which every proxy has to pass.
func (s *scene) probe(ctx context.Context) error {
	var r health.Result
	if err := s.RunSweep(ctx, fleet.HealthRound(), health.Input{}, &r); err != nil {
		return err
	}
	if passed := r.Reasons[v1.ReasonHealthy]; passed != s.size {
		return fmt.Errorf("%d of %d proxies passed a health round: %v", passed, s.size, r.Reasons)
	}
	return nil
}

func (s *scene) close() error {
	s.stop()
	var faults []error
	if s.Fleet != nil {
		faults = append(faults, s.Close())
	}
	if s.egress != nil {
		faults = append(faults, s.egress.street.Close())
	}
	return errors.Join(faults...)
}

// run counts each source alone, and then the twin.
func (s *scene) run(ctx context.Context, _ int) (frame.Samples, error) {
	var found []source
	for _, schedule := range schedules() {
		one, err := s.countSchedule(ctx, schedule)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", schedule.ID, err)
		}
		found = append(found, one)
	}
	// Before the proxies look often: the twins are alone with the server.
	naive, err := s.countTwins(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.work(ctx, timing(s.size)); err != nil { // the runs that follow are watched at this pace
		return nil, err
	}
	for _, count := range []func(context.Context) (source, error){s.countNewRun, s.countWatch} {
		one, err := count(ctx)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return samplesOf(found, s.size, naive)
}

// countTwins returns what a proxy-day costs with as many twins as there are proxies, up to
// some; they share nothing.
func (s *scene) countTwins(ctx context.Context) (counts, error) {
	twins := min(s.size, mostTwins)
	one, err := countTwins(ctx, s.Temporal, s.meter, twins)
	if err != nil {
		return counts{}, err
	}
	return one.perProxyDay(twins)
}

// samplesOf puts the sources together. It is pure.
func samplesOf(found []source, proxies int, twin counts) (frame.Samples, error) {
	var sum counts
	out := frame.Samples{}
	for _, one := range found {
		c, err := one.perProxyDay(proxies)
		if err != nil {
			return nil, err
		}
		sum = sum.plus(c)
		out["actions: "+one.name], out["events: "+one.name] = frame.Sample{Value: c.Actions}, frame.Sample{Value: c.Events}
	}
	out["actions"] = frame.Sample{Value: sum.Actions, Baseline: twin.Actions}
	out["events"] = frame.Sample{Value: sum.Events, Baseline: twin.Events}
	out["transitions"] = frame.Sample{Value: sum.Transitions, Baseline: twin.Transitions}
	out["actions of the twin"] = frame.Sample{Value: twin.Actions, Baseline: sum.Actions}
	out["actions, the server's counter"] = frame.Sample{Value: sum.Counter, Baseline: sum.Actions}
	return out, nil
}

func addressOf(p v1.Proxy) string { return net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port)) }
