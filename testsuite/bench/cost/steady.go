package cost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// every is how often a schedule runs here. Nothing that is counted depends on it, as long
// as a run ends before the next one is due.
func every(s fleet.Schedule, size int) time.Duration {
	const usual, crowded = 2 * time.Second, 6 * time.Second
	if s.ID == health.Schedule && size > mostTwins {
		return crowded
	}
	return usual
}

// timing is that of production, with looks at running instances in seconds in the place
// of an hour, and a lease of as many looks.
func timing(size int) proxy.Timing {
	const usual, crowded = 4 * time.Second, 12 * time.Second
	t := proxy.DefaultTiming()
	looks := t.Steady.Lease / t.Steady.Poll
	t.Steady.Poll = usual
	if size > mostTwins {
		t.Steady.Poll = crowded
	}
	t.Steady.Max, t.Steady.Lease = t.Steady.Poll, looks*t.Steady.Poll
	return t
}

// countSchedule counts some runs of one schedule while the others are not there.
func (s *scene) countSchedule(ctx context.Context, schedule fleet.Schedule) (source, error) {
	production := schedule.Every
	schedule.Every = every(schedule, s.size)
	before, err := s.meter.settled(ctx)
	if err != nil {
		return source{}, err
	}
	if err := s.EnsureSchedules(ctx, schedule); err != nil {
		return source{}, err
	}
	ran := func(ctx context.Context, more string) (int64, error) {
		n, err := s.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId STARTS_WITH '%s-' AND ExecutionStatus %s", schedule.ID, more),
		})
		return n.GetCount(), err
	}
	err = until(ctx, func(ctx context.Context) (bool, error) {
		n, err := ran(ctx, "= 'Completed'")
		return n >= scheduledRuns, err
	})
	err = errors.Join(err, s.PauseSchedule(ctx, schedule.ID, "counted"))
	if err != nil {
		return source{}, err
	}
	after, err := s.meter.settled(ctx)
	if err != nil {
		return source{}, err
	}
	total, err := ran(ctx, "IN ('Completed', 'Running', 'Failed', 'TimedOut', 'Terminated', 'Canceled')")
	if err != nil {
		return source{}, err
	}
	well, err := ran(ctx, "= 'Completed'")
	counted := after.since(before)
	if n := counted.counter[actionSignal]; err == nil && (n > 0 || well != total) {
		err = fmt.Errorf("the fleet is not steady: %v signals, and %d of %d runs ended well", n, well, total)
	}
	return source{
		name: schedule.ID, counted: counted.counts, cycles: float64(well), perDay: inADay(production),
	}, err
}

// countNewRun counts what it takes to continue every proxy as new. The signal that asks
// for it here is none of production's, where it is due after so many days.
func (s *scene) countNewRun(ctx context.Context) (source, error) {
	before, err := s.meter.settled(ctx)
	if err != nil {
		return source{}, err
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	for n := range s.size {
		group.Go(func() error {
			p := v1.Proxy{Metadata: v1.Metadata{Namespace: live.Namespace, Name: live.Name(n)}}
			return s.Hint(within, p, proxy.Hint{Renew: true})
		})
	}
	if err := group.Wait(); err != nil {
		return source{}, err
	}
	// Each new run begins with one watch.
	err = s.untilWatched(ctx, before, s.size)
	if err != nil {
		return source{}, err
	}
	after, err := s.meter.read(ctx)
	counted := after.since(before)
	counted.Actions -= counted.counter[actionSignal] + counted.counter[actionRetry] // looks are the watch's
	counted.Counter -= counted.counter[actionSignal] + counted.counter[actionRetry]
	return source{
		name: sourceNewRun, counted: counted.counts, cycles: float64(s.size),
		perDay: float64(s.size) * inADay(proxy.MaxRunAge),
	}, err
}

// countWatch counts the looks of every proxy over some leases, with what the end of a
// lease takes.
func (s *scene) countWatch(ctx context.Context) (source, error) {
	before, err := s.meter.read(ctx)
	if err != nil {
		return source{}, err
	}
	// Each lease ends with the watch of the next one.
	err = s.untilWatched(ctx, before, leases*s.size)
	if err != nil {
		return source{}, err
	}
	after, err := s.meter.read(ctx)
	counted := after.since(before)
	return source{
		name: sourceWatch, counted: counted.counts, cycles: counted.counter[actionRetry],
		perDay: float64(s.size) * inADay(proxy.DefaultTiming().Steady.Poll),
	}, err
}

// untilWatched waits until so many more activities were asked for.
func (s *scene) untilWatched(ctx context.Context, before reading, watches int) error {
	return until(ctx, func(ctx context.Context) (bool, error) {
		now, err := s.meter.actions(ctx)
		return now[actionActivity]-before.counter[actionActivity] >= float64(watches), err
	})
}

// until looks until something is so.
func until(ctx context.Context, so func(context.Context) (bool, error)) error {
	const apart = 500 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		done, err := so(ctx)
		if err != nil || done {
			return err
		}
		if err := pause(ctx, apart); err != nil {
			return err
		}
	}
}
