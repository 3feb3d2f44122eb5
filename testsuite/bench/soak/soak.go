// Package soak lets 500 proxies be changed for half an hour without a pause, and judges
// whether what the worker takes stays as it is: its memory, goroutines and open files,
// and the length of histories. The worker is the binary of the image. It may import every
// room. Start reading at Part; series.go judges, changes.go is what happens meanwhile.
package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/bench/shipped"
)

const (
	// LastingEnv is how long a soak lasts, such as 5m; unset: half an hour. A shorter one
	// is a look, and is not judged.
	LastingEnv = "SOAK"
	usual      = 30 * time.Minute

	size        = 500
	sampleEvery = 10 * time.Second
	// least is so long that what is judged has a sample for each block.
	least = 18 * sampleEvery
	// suggestAt is at how many events the server suggests a new run. With its own 4,096 no
	// proxy would come to one in half an hour.
	suggestAt = 100
	// longest is what a history may have: the round that is going on ends first.
	longest = 3 * suggestAt
	// leastRate is how many changes a second a soak needs to prove anything.
	leastRate = 1.0

	rate     = "changes"
	longHist = "longest history"
)

// settings let everything that looks after the fleet run many times.
const settings = `
drift: {interval: 15s}
gc: {interval: 30s}
check: {interval: 15s}
steadyPoll: 2m
log: {format: json}
`

// lasting is how long to soak.
func lasting(text string) (d time.Duration, err error) {
	if text == "" {
		return usual, nil
	}
	d, err = time.ParseDuration(text)
	if err != nil || d < least {
		return 0, fmt.Errorf("%s=%q is no duration of at least %s", LastingEnv, text, least)
	}
	return d, nil
}

// Part is one soak.
func Part() frame.Part {
	d, err := lasting(os.Getenv(LastingEnv))
	judged := err == nil && d >= usual
	about := fmt.Sprintf("what the worker takes while %d proxies change for %s", size, d)
	if !judged {
		about += "; a look, which is not judged"
	}
	p := frame.Part{
		Name: "soak", About: about, Sizes: []int{size}, Runs: 1,
		OneSize: "it is about time, and not about size",
		Figures: append(flatness(judged, size),
			frame.Figure{Name: longHist, Unit: "events", Must: frame.AtMost(longest)},
			frame.Figure{Name: rate, Unit: "1/s", Must: frame.AtLeast(leastRate)}),
		Open: func(ctx context.Context, size int) (frame.Scene, error) {
			if err != nil {
				return frame.Scene{}, err
			}
			return open(ctx, size, d)
		},
	}
	return p
}

// scene is a fleet that is changed.
type scene struct {
	size  int
	lasts time.Duration
	say   io.Writer

	fleet   *live.Fleet
	cloud   *shipped.Cloud
	worker  *shipped.Worker
	changes *changes
}

func open(ctx context.Context, size int, lasts time.Duration) (_ frame.Scene, err error) {
	s := &scene{size: size, lasts: lasts, say: os.Stderr}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	suggest := fmt.Sprintf("limit.historyCount.suggestContinueAsNew=%d", suggestAt)
	if s.fleet, err = live.Serve(ctx, "--dynamic-config-value", suggest); err != nil {
		return frame.Scene{}, err
	}
	if s.cloud, err = shipped.NewCloud(ctx, size); err != nil {
		return frame.Scene{}, err
	}
	s.worker, err = shipped.Start(ctx, shipped.Options{
		Temporal: s.fleet.Server.Address, Backend: s.cloud.URL, Settings: settings,
	})
	if err != nil {
		return frame.Scene{}, err
	}
	s.changes = newChanges(s)
	if err := s.changes.populate(ctx); err != nil {
		return frame.Scene{}, err
	}
	return frame.Scene{Run: s.run, Close: s.close}, s.settle(ctx)
}

// close ends what was started, the worker first.
func (s *scene) close() error {
	var faults []error
	if s.worker != nil {
		faults = append(faults, s.worker.Close())
	}
	if s.cloud != nil {
		faults = append(faults, s.cloud.Close())
	}
	if s.fleet != nil {
		faults = append(faults, s.fleet.Close())
	}
	return errors.Join(faults...)
}

// settle waits until every proxy runs.
func (s *scene) settle(ctx context.Context) error { return s.fleet.Await(ctx, s.size, v1.PhaseRunning) }

// run soaks once. In the end every proxy has to run again: a fleet that lost some takes
// less, and proves nothing.
func (s *scene) run(ctx context.Context, _ int) (frame.Samples, error) {
	changing, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() { defer close(ended); s.changes.run(changing) }()
	w := &watch{scene: s, all: map[string]*series{}}
	err := w.run(ctx, s.lasts)
	stop()
	<-ended
	if err := errors.Join(err, s.changes.judge()); err != nil {
		return nil, err
	}
	samples := samplesOf(w.all)
	samples[longHist] = frame.Sample{Value: w.longest}
	samples[rate] = frame.Sample{Value: float64(s.changes.total()) / s.lasts.Seconds()}
	return samples, s.settle(ctx)
}
