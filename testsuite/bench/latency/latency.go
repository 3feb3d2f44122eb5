// Package latency measures the time that our code adds, in a fleet of so many proxies
// that only run: from the instant at which a backend's instance runs until Visibility
// shows the proxy as Running, from a DELETE until the backend is asked to delete, and
// from another spec until the backend is asked to delete the instance of the old one. It
// may import every room. Start reading at Part.
package latency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	most = 1000
	port = 3128
	// samples of each kind in a run. What is told is the longest of them.
	samples = 20
	// slack is what we may add, to the poll where there is one.
	slack = time.Second
	// doneWithin is long after every limit: a figure that is not measured is a fault.
	doneWithin = time.Minute
	tries      = 5

	idle, slow = "idle", "slow" // the providers
)

// The figures.
const (
	ready  = "ready to Running"
	remove = "DELETE to delete"
	change = "spec to delete"
)

// busyPoll is how often a watch looks at an instance that comes or goes.
func busyPoll() time.Duration { return proxy.DefaultTiming().Busy.Poll }

// Part measures beside so many idle proxies.
func Part() frame.Part {
	return frame.Part{
		Name: "latency", About: "the longest that our code adds: until Running is seen, until a delete reaches the backend",
		Sizes: []int{100, 300, most}, Open: open,
		Figures: []frame.Figure{
			{Name: ready, Unit: "s", Must: frame.AtMost((busyPoll() + slack).Seconds()), At: most},
			{Name: remove, Unit: "s", Must: frame.AtMost(slack.Seconds()), At: most},
			{Name: change, Unit: "s", Must: frame.AtMost(slack.Seconds()), At: most},
		},
	}
}

// scene is a fleet of idle proxies, and a backend whose instances run when they are told
// to.
type scene struct {
	fleet      *live.Fleet
	size       int
	next       int // the number of the next proxy that is made
	idle, slow *bell
}

func open(ctx context.Context, size int) (_ frame.Scene, err error) {
	own := fake.WithInstallation(live.Installation)
	s := &scene{
		size: size, next: size,
		idle: newBell(fake.New(idle, own)), slow: newBell(fake.New(slow, own, fake.WithProvisioning())),
	}
	s.fleet, err = live.Open(ctx, live.Options{
		Backends: map[string]providers.Provider{idle: s.idle, slow: s.slow}, Timing: proxy.DefaultTiming(),
		Worker: live.AsInProduction(),
	})
	if err != nil {
		return frame.Scene{}, err
	}
	err = s.put(ctx, 0, size, idle)
	if err == nil {
		err = s.fleet.Await(ctx, size, v1.PhaseRunning)
	}
	if err != nil {
		return frame.Scene{}, errors.Join(err, s.fleet.Close())
	}
	return frame.Scene{Run: s.run, Close: s.fleet.Close}, nil
}

// run leaves as many proxies as there were.
func (s *scene) run(ctx context.Context, _ int) (frame.Samples, error) {
	all := frame.Samples{}
	for figure, measure := range map[string]func(context.Context) ([]time.Duration, error){
		ready: s.comeUp, remove: s.leave, change: s.change,
	} {
		took, err := measure(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", figure, err)
		}
		all[figure] = frame.Sample{Value: slices.Max(took).Seconds()}
	}
	all[ready] = frame.Sample{Value: all[ready].Value, Baseline: busyPoll().Seconds()}
	return all, nil
}

// add makes as many proxies as there are samples, and returns the number of the first.
func (s *scene) add(ctx context.Context, provider string) (first int, err error) {
	first = s.next
	s.next += samples
	return first, s.put(ctx, first, s.next, provider)
}

// put asks again for what was not answered in time: it is not measured, and asking again
// has no other effect.
func (s *scene) put(ctx context.Context, from, to int, provider string) (err error) {
	for range tries {
		err = s.fleet.Put(ctx, from, to, v1.ProxySpec{Provider: provider, Port: port})
		if !errors.Is(err, fleet.ErrUnavailable) {
			return err
		}
	}
	return err
}

// leave measures deletes, one after the other.
func (s *scene) leave(ctx context.Context) (took []time.Duration, err error) {
	first, err := s.add(ctx, idle)
	if err != nil {
		return nil, err
	}
	if err := s.fleet.Await(ctx, s.size+samples, v1.PhaseRunning); err != nil {
		return nil, err
	}
	for n := range samples {
		one, err := s.until(ctx, first+n, func(p v1.Proxy) error {
			_, err := s.fleet.Delete(ctx, p.Metadata.Namespace, p.Metadata.Name, "bench", fleet.Request{})
			return err
		})
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, s.fleet.Await(ctx, s.size, v1.PhaseRunning)
}

// change measures what another spec does to idle proxies, one after the other.
func (s *scene) change(ctx context.Context) (took []time.Duration, err error) {
	for n := range min(samples, s.size) {
		one, err := s.until(ctx, n, func(p v1.Proxy) error {
			p.Spec.Port++
			_, _, err := s.fleet.Apply(ctx, v1.Proxy{Metadata: p.Metadata, Spec: p.Spec}, fleet.Request{})
			return err
		})
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, s.fleet.Await(ctx, s.size, v1.PhaseRunning)
}

// until asks for something and returns how long it took from before it was asked until
// the backend is told to delete the instance that was there.
func (s *scene) until(ctx context.Context, n int, ask func(v1.Proxy) error) (time.Duration, error) {
	p, err := s.fleet.Get(ctx, live.Namespace, live.Name(n))
	if err != nil {
		return 0, err
	}
	heard := s.idle.listen(p.Status.ProviderID)
	begun := time.Now()
	if err := ask(p); err != nil {
		return 0, err
	}
	select {
	case at := <-heard:
		return at.Sub(begun), nil
	case <-time.After(doneWithin):
		return 0, fmt.Errorf("the backend was not asked to delete instance %s within %s", p.Status.ProviderID, doneWithin)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
