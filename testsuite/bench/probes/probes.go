// Package probes measures a health round: over proxies that serve, beside a bare loop of
// the same CONNECTs, and over some that hang. The round is the workflow of production on
// a real Temporal server. It may import every room. Start reading at Part.
package probes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
	"github.com/egressfleet/egressfleet/testsuite/bench/street"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	most = 1000
	// atOnce is what a worker runs at once: as many batches as there are pages.
	atOnce = most
	// tenth of the proxies hang.
	tenth = 10
	// slack is what a round may take beyond its tries.
	slack = 2 * time.Second
)

// Part probes proxies that serve.
func Part() frame.Part {
	return frame.Part{
		Name: "probes", About: "one health round over proxies that serve, beside a bare loop of the same CONNECTs",
		Sizes: []int{100, 300, most},
		Open:  func(ctx context.Context, size int) (frame.Scene, error) { return open(ctx, size, 0) },
		Figures: []frame.Figure{
			{Name: "round", Unit: "proxies/s", Must: frame.RatioAtLeast(0.8), At: most},
			{Name: "prober alone", Unit: "proxies/s"},
		},
	}
}

// Hanging probes proxies of which a tenth takes connections and never answers.
func Hanging() frame.Part {
	return frame.Part{
		Name: "probes-hanging", About: "one health round while one of ten proxies hangs, beside what their tries take",
		Sizes: []int{100, 300, most},
		Open:  func(ctx context.Context, size int) (frame.Scene, error) { return open(ctx, size, size/tenth) },
		Figures: []frame.Figure{
			{Name: "round", Unit: "s", Must: frame.AtMost((tries() + slack).Seconds())},
		},
	}
}

// tries are what it takes to call a healthy proxy that hangs unhealthy.
func tries() time.Duration {
	l, t := probe.DefaultLimits(), probe.DefaultThresholds()
	return time.Duration(t.Fall)*l.Answer + time.Duration(t.Fall-1)*t.Pause
}

// scene is a fleet of such proxies, and a worker that probes it.
type scene struct {
	street  *street.Street
	stage   *stage.Stage
	worker  worker.Worker
	prober  *probe.Prober
	hanging int
}

func open(ctx context.Context, size, hanging int) (frame.Scene, error) {
	served, err := street.Open(ctx, size, hanging)
	if err != nil {
		return frame.Scene{}, err
	}
	s := &scene{street: served, prober: &probe.Prober{}, hanging: hanging}
	if s.stage, err = stage.Open(ctx, served.Proxies); err != nil {
		return frame.Scene{}, errors.Join(err, served.Close())
	}
	s.worker = worker.New(s.stage.Temporal, stage.Queue, worker.Options{})
	workflows.Register(s.worker, proxy.DefaultTiming())
	activities.Register(s.worker, &activities.Instances{}, &activities.Health{
		Fleet: hands.Probed{Client: s.stage.Fleet}, Prober: s.prober,
		TargetOf: func(string) probe.Target { return served.Target },
	})
	if err := s.worker.Start(); err != nil {
		return frame.Scene{}, errors.Join(err, s.stage.Close(), served.Close())
	}
	if err := s.settle(ctx); err != nil {
		return frame.Scene{}, errors.Join(err, s.close())
	}
	run := s.measure
	if hanging > 0 {
		run = s.outlast
	}
	return frame.Scene{Run: run, Close: s.close}, nil
}

// settle has the fleet followed until what was just made is of before. The first round lists
// everything, and learns Temporal's time from what it sees.
func (s *scene) settle(ctx context.Context) error {
	if err := s.round(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(stage.Settled):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.round(ctx)
}

func (s *scene) close() error {
	s.worker.Stop()
	return errors.Join(s.stage.Close(), s.street.Close())
}

func (s *scene) measure(ctx context.Context, number int) (frame.Samples, error) {
	var loop, round, alone float64 // seconds
	err := frame.Turns(number,
		func() (err error) {
			loop, err = frame.Timed(func() error { return bare(ctx, s.street.Proxies, s.street.Target, atOnce) })
			return err
		},
		func() (err error) {
			if round, err = frame.Timed(func() error { return s.round(ctx) }); err != nil {
				return err
			}
			alone, err = frame.Timed(func() error { return s.batch(ctx) })
			return err
		})
	n := float64(len(s.street.Proxies))
	return frame.Samples{
		"round": {Value: n / round, Baseline: n / loop}, "prober alone": {Value: n / alone, Baseline: n / loop},
	}, err
}

func (s *scene) outlast(ctx context.Context, _ int) (frame.Samples, error) {
	took, err := frame.Timed(func() error { return s.round(ctx) })
	return frame.Samples{"round": {Value: took, Baseline: tries().Seconds()}}, err
}

// round runs the workflow. Any other outcome than the right one is an error.
func (s *scene) round(ctx context.Context) error {
	var r health.Result
	if err := s.stage.Fleet.RunSweep(ctx, fleet.HealthRound(), health.Input{}, &r); err != nil {
		return err
	}
	well := r.Reasons[v1.ReasonHealthy]
	if r.Probed != len(s.street.Proxies) || well != r.Probed-s.hanging || r.Reasons[v1.ReasonUnreachable] != s.hanging {
		return fmt.Errorf("%d of %d proxies were probed, with %v; %d hang",
			r.Probed, len(s.street.Proxies), r.Reasons, s.hanging)
	}
	return nil
}

// batch runs the prober over all of them, without Temporal.
func (s *scene) batch(ctx context.Context) error {
	jobs := make([]probe.Job, len(s.street.Proxies))
	for i, p := range s.street.Proxies {
		address := net.JoinHostPort(p.Status.IP, strconv.Itoa(p.Spec.Port))
		jobs[i] = probe.Job{Proxy: probe.Proxy{Address: address}, Target: s.street.Target, Before: probe.HealthHealthy}
	}
	prober := probe.Prober{Concurrency: atOnce}
	for i, r := range prober.Batch(ctx, jobs, nil) {
		if !r.Verdict.Passed() {
			return fmt.Errorf("proxy %d: %s: %s", i, r.Verdict.Reason, r.Verdict.Text)
		}
	}
	return nil
}
