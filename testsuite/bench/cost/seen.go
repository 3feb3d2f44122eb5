package cost

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/health"
)

const (
	// grace is what a sweep may take to see something, beyond its interval.
	grace = 30 * time.Second
	// mostTroubles of each kind happen, and to no more than a part of the proxies.
	mostTroubles, troubled = 20, 5
	// intervals is how many of its sweeps the moments of a kind are spread over.
	intervals = 2
	worst     = 95 // percent
)

// Seen takes the times in which that fleet sees trouble, with the schedules and the
// timing of production as they are.
func Seen() frame.Part {
	within := func(interval time.Duration) frame.Must { return frame.AtMost((interval + grace).Seconds()) }
	return frame.Part{
		Name: "cost-seen", About: "how soon a lost instance, and a proxy that hangs, are seen for that",
		Sizes: []int{10, 100, most}, Runs: 1,
		Open: func(ctx context.Context, size int) (frame.Scene, error) {
			s, err := newScene(ctx, size)
			if err != nil {
				return frame.Scene{}, err
			}
			return frame.Scene{Run: s.see, Close: s.close}, nil
		},
		Figures: []frame.Figure{
			{Name: "drift, p95", Unit: "s", Must: within(drift.Interval)},
			{Name: "drift, median", Unit: "s"},
			{Name: "health, p95", Unit: "s", Must: within(health.Interval)},
			{Name: "health, median", Unit: "s"},
		},
	}
}

// trouble is one kind of it, and what shows that it was seen.
type trouble struct {
	every time.Duration // the interval of what sees it
	from  int           // the first proxy that it happens to
	cause func(v1.Proxy)
	seen  func(before, now v1.Proxy) bool
}

// see lets both kinds happen side by side, at moments that are spread over intervals of
// their sweeps.
func (s *scene) see(ctx context.Context, _ int) (frame.Samples, error) {
	if err := s.EnsureSchedules(ctx, schedules()...); err != nil {
		return nil, err
	}
	n := min(s.size/troubled, mostTroubles)
	lost := trouble{
		every: drift.Interval, cause: func(p v1.Proxy) { s.backend.Lose(p.Status.ProviderID) },
		seen: func(before, now v1.Proxy) bool { return !now.Status.Since.Equal(before.Status.Since) },
	}
	hangs := trouble{
		every: health.Interval, from: n, cause: func(p v1.Proxy) { s.egress.hang(p.Status.IP) },
		seen: func(_, now v1.Proxy) bool { return now.Status.Healthy != nil && !*now.Status.Healthy },
	}
	var drifts, healths []float64
	group, within := errgroup.WithContext(ctx)
	group.Go(func() (err error) { drifts, err = s.let(within, lost, n); return err })
	group.Go(func() (err error) { healths, err = s.let(within, hangs, n); return err })
	err := group.Wait()
	return frame.Samples{
		"drift, p95":     {Value: frame.Percentile(drifts, worst), Baseline: drift.Interval.Seconds()},
		"drift, median":  {Value: frame.Median(drifts), Baseline: drift.Interval.Seconds()},
		"health, p95":    {Value: frame.Percentile(healths, worst), Baseline: health.Interval.Seconds()},
		"health, median": {Value: frame.Median(healths), Baseline: health.Interval.Seconds()},
	}, err
}

// let lets trouble happen to so many proxies and returns after how many seconds each was
// seen.
func (s *scene) let(ctx context.Context, t trouble, n int) (seconds []float64, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() error {
			if err := pause(ctx, moment(i, n, t.every)); err != nil {
				return err
			}
			took, err := s.befall(ctx, t, live.Name(t.from+i))
			mu.Lock()
			defer mu.Unlock()
			seconds = append(seconds, took.Seconds())
			return err
		})
	}
	return seconds, group.Wait()
}

// moment is when the i-th of n troubles happens. They are spread evenly over the intervals
// and one part more, so that no two are equally long before a sweep.
func moment(i, n int, every time.Duration) time.Duration {
	return (intervals*every + every/time.Duration(n)) * time.Duration(i) / time.Duration(n)
}

// befall lets trouble happen to one proxy, and returns how long it was until it was seen.
func (s *scene) befall(ctx context.Context, t trouble, name string) (time.Duration, error) {
	before, err := s.Get(ctx, live.Namespace, name)
	if err != nil {
		return 0, err
	}
	if t.seen(before, before) || before.Status.Phase != v1.PhaseRunning {
		return 0, fmt.Errorf("%s is in trouble already: %+v", name, before.Status)
	}
	t.cause(before)
	began := time.Now()
	err = until(ctx, func(ctx context.Context) (bool, error) {
		now, err := s.Get(ctx, live.Namespace, name)
		return err == nil && t.seen(before, now), err
	})
	if err != nil {
		err = errors.Join(fmt.Errorf("%s is in trouble since %s, and that is not seen", name, began), err)
	}
	return time.Since(began), err
}
