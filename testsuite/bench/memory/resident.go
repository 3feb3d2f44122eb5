// Package memory measures what a worker takes for a fleet that is idle: of the binary of
// the image, with the bound of its heap, beside 10,000 proxies; what a message costs then to
// a proxy that is not kept; and what one that is kept takes, beside an entity that only
// waits. It may import every room. Start reading at Part; kept.go is the second one.
package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/bench/shipped"
	"github.com/egressfleet/egressfleet/testsuite/usage"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	most     = 10_000
	mebibyte = 1 << 20
	limit    = 128 * mebibyte // bytes, as the chart has it
	heap     = "64MiB"        // what the worker takes of that limit, next to its binary
	keptMost = 1000           // workflows

	// idle is how long nothing happens but what looks after the fleet.
	idle = 2 * time.Minute
	// wakes are so many proxies that end their wait, one after the other, as those do whose
	// lease has ended: with leases of twelve hours 10,000 of them do so in an hour and a half.
	wakes     = 1200
	wakeEvery = 50 * time.Millisecond
	// asked are so many proxies that get a message, twice: first they are not kept.
	asked = 50

	resident  = "rss"
	workflows = "kept"
	message   = "message not kept"
	processor = "processor not kept"
)

// settings of the worker that is measured. What looks after the fleet runs more often than
// it does for others, so that a few minutes have many of each.
const settings = `
drift: {interval: 20s}
gc: {interval: 40s}
check: {interval: 20s}
log: {format: json}
`

var spec = v1.ProxySpec{Provider: shipped.Provider, Port: 3128, Placement: v1.Placement{Region: "us-central1"}}

// Part is the memory of a worker whose fleet is idle. Making the fleet takes minutes, so
// each size runs once.
func Part() frame.Part {
	return frame.Part{
		Name: "memory", About: "what the binary of the image has resident beside idle proxies, and what replay costs",
		Sizes: []int{1000, 3000, most}, Runs: 1, Open: open,
		Figures: []frame.Figure{
			{Name: resident, Unit: "B", Must: frame.AtMost(limit)},
			{Name: workflows, Unit: "workflows", Must: frame.AtMost(keptMost)},
			// Beside them the same to proxies that are kept.
			{Name: message, Unit: "ms"},
			{Name: processor, Unit: "ms"},
		},
	}
}

// scene is a fleet that is there, without a worker.
type scene struct {
	size  int
	fleet *live.Fleet
	cloud *shipped.Cloud
}

// open makes the fleet, by a worker without a bound.
func open(ctx context.Context, size int) (_ frame.Scene, err error) {
	s := &scene{size: size}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.fleet, err = live.Serve(ctx); err != nil {
		return frame.Scene{}, err
	}
	if s.cloud, err = shipped.NewCloud(ctx, size); err != nil {
		return frame.Scene{}, err
	}
	w, err := s.work(ctx, "", "log: {level: warn}")
	if err != nil {
		return frame.Scene{}, err
	}
	err = put(ctx, s.fleet, 0, size, spec)
	if err == nil {
		err = s.fleet.Await(ctx, size, v1.PhaseRunning)
	}
	return frame.Scene{Run: s.run, Close: s.close}, errors.Join(err, w.Close())
}

func (s *scene) work(ctx context.Context, bound, more string) (*shipped.Worker, error) {
	return shipped.Start(ctx, shipped.Options{
		Temporal: s.fleet.Server.Address, Backend: s.cloud.URL, Heap: bound, Settings: more,
	})
}

func (s *scene) close() error {
	var faults []error
	if s.cloud != nil {
		faults = append(faults, s.cloud.Close())
	}
	if s.fleet != nil {
		faults = append(faults, s.fleet.Close())
	}
	return errors.Join(faults...)
}

// run measures a new worker, from its start on.
func (s *scene) run(ctx context.Context, number int) (_ frame.Samples, err error) {
	w, err := s.work(ctx, heap, settings)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	rest, err := s.rest(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := s.wake(ctx); err != nil {
		return nil, err
	}
	// Those that were woken are the first ones, and those that are asked are the last.
	first, err := s.ask(ctx, w, fmt.Sprintf("first-%d", number))
	if err != nil {
		return nil, err
	}
	second, err := s.ask(ctx, w, fmt.Sprintf("second-%d", number))
	if err != nil {
		return nil, err
	}
	kept, err := w.Kept()
	if err != nil {
		return nil, err
	}
	used, err := w.Usage()
	_, _ = fmt.Fprintf(os.Stderr, "memory at %d: kept=%d idle=%.3f cores %s\n", s.size, kept, rest, used)
	return frame.Samples{
		resident:  {Value: float64(used.Most)},
		workflows: {Value: float64(kept)},
		message:   {Value: first.median, Baseline: second.median},
		processor: {Value: first.processor(rest), Baseline: second.processor(rest)},
	}, err
}

// rest lets the worker be, and returns the cores that it takes meanwhile.
func (s *scene) rest(ctx context.Context, w *shipped.Worker) (cores float64, err error) {
	before, err := w.Usage()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(idle):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := w.Usage()
	return (after.CPU() - before.CPU()).Seconds() / idle.Seconds(), err
}

// wake has proxies look for themselves, and wait anew.
func (s *scene) wake(ctx context.Context) error {
	ticks := time.NewTicker(wakeEvery)
	defer ticks.Stop()
	for n := range min(wakes, s.size-asked) {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		p := v1.Proxy{Metadata: v1.Metadata{Namespace: live.Namespace, Name: live.Name(n)}}
		if err := s.fleet.Hint(ctx, p, proxy.Hint{Reason: "bench"}); err != nil {
			return err
		}
	}
	return nil
}

// cost is what messages cost.
type cost struct {
	median float64 // milliseconds until the answer
	took   time.Duration
	used   time.Duration // of processors, with what the worker does anyway
}

// processor is what one message takes, in milliseconds, without the cores that a worker at
// rest takes.
func (c cost) processor(rest float64) float64 {
	return (c.used.Seconds() - rest*c.took.Seconds()) * float64(time.Second/time.Millisecond) / asked
}

// ask sends each of some proxies a message and waits for its answer, one after the other.
func (s *scene) ask(ctx context.Context, w *shipped.Worker, reason string) (c cost, err error) {
	var before, after usage.Usage
	if before, err = w.Usage(); err != nil {
		return c, err
	}
	begun := time.Now()
	times := make([]float64, asked)
	for i := range times {
		sent := time.Now()
		if err := s.hold(ctx, live.Name(s.size-1-i), reason); err != nil {
			return c, err
		}
		times[i] = float64(time.Since(sent)) / float64(time.Millisecond)
	}
	after, err = w.Usage()
	return cost{frame.Median(times), time.Since(begun), after.CPU() - before.CPU()}, err
}

// hold is a message that is answered once it has had its effect.
func (s *scene) hold(ctx context.Context, name, reason string) error {
	return insist(ctx, func(ctx context.Context) error {
		_, err := s.fleet.Hold(ctx, live.Namespace, name, v1.Hold{Reason: reason}, fleet.Request{ID: reason})
		return err
	})
}
