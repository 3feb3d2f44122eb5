package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

const (
	namespace = "default"
	// bornWithin and settleWithin bound the waits for all proxies to serve.
	bornWithin, settleWithin = 2 * time.Minute, time.Minute
	lookEvery                = time.Second
	together                 = 20 // requests at a time
)

// world is one run.
type world struct {
	diary
	out      io.Writer
	site     *site
	egress   *egress
	cloud    *cloud
	temporal sdk.Client
	sight    *sight
	still    sync.RWMutex
	lives    []life
	e        evidence
}

// run plays one life and returns the evidence.
func (w *world) run(ctx context.Context) (e evidence, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.site, err = newSite(ctx); err != nil {
		return e, err
	}
	defer w.site.close()
	if w.egress, err = newEgress(ctx); err != nil {
		return e, err
	}
	defer w.egress.close()
	w.cloud = newCloud(w.egress)
	server, err := devserver.Start(ctx)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	w.temporal, err = sdk.DialContext(ctx, sdk.Options{HostPort: server.Address, Logger: devserver.Quiet()})
	if err != nil {
		return e, err
	}
	defer w.temporal.Close()
	w.sight = &sight{Client: fleet.New(w.temporal, installation)}
	stop, err := w.hire(ctx, w.temporal)
	if err != nil {
		return e, err
	}
	defer stop()
	if err := w.live(ctx); err != nil {
		return e, err
	}
	return w.gather(ctx)
}

// live is one life: birth, what is planned, and the time to settle.
func (w *world) live(ctx context.Context) error {
	if err := w.sight.EnsureInstallation(ctx); err != nil {
		return err
	}
	if err := w.born(ctx); err != nil {
		return err
	}
	if err := w.sight.EnsureSchedules(ctx, schedules()...); err != nil {
		return err
	}
	w.say("%d proxies were made", proxies)
	if !w.settle(ctx, bornWithin) {
		return fmt.Errorf("not all proxies serve within %s", bornWithin)
	}
	begun := time.Now()
	w.say("all serve; the hour begins")
	plan := w.steps()
	slices.SortStableFunc(plan, func(a, b step) int { return int(a.at - b.at) })
	for _, s := range plan {
		if err := pause(ctx, time.Until(begun.Add(s.at))); err != nil {
			return err
		}
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("after %s: %w", s.at, err)
		}
	}
	if begun = time.Now(); w.settle(ctx, settleWithin) {
		w.say("settled after %s", time.Since(begun).Round(time.Second))
	}
	return ctx.Err()
}

// born makes all proxies.
func (w *world) born(ctx context.Context) error {
	w.lives = make([]life, proxies)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for n := range proxies {
		group.Go(func() error {
			return answered(ctx, func() error {
				p, _, err := w.sight.Apply(ctx, wish(nameOf(n), w.wanted()), fleet.Request{ID: "born-" + strconv.Itoa(n)})
				w.lives[n] = life{Name: nameOf(n), UID: p.Metadata.UID}
				return err
			})
		})
	}
	return group.Wait()
}

// settle waits until all living proxies serve and nothing else is at the backend.
func (w *world) settle(ctx context.Context, within time.Duration) bool {
	for begun := time.Now(); time.Since(begun) < within; {
		shown, err := w.sight.List(ctx, namespace)
		held, _ := w.cloud.record()
		well := count(shown, func(p v1.Proxy) bool {
			return p.Status.Phase == v1.PhaseRunning && p.Status.Healthy != nil && *p.Status.Healthy
		})
		living := count(w.lives, func(l life) bool { return l.Terminated.IsZero() })
		if err == nil && well == living && len(held) == living {
			return true
		}
		if pause(ctx, lookEvery) != nil {
			return false
		}
	}
	return false
}

// answered asks again as long as the fleet has no time to answer: on a busy machine a
// worker may take longer than a client waits.
func answered(ctx context.Context, ask func() error) error {
	for begun := time.Now(); ; {
		err := ask()
		if err == nil || !errors.Is(err, fleet.ErrUnavailable) || time.Since(begun) > bornWithin {
			return err
		}
		if err := pause(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// gather puts the evidence together.
func (w *world) gather(ctx context.Context) (evidence, error) {
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for i := range w.lives {
		l := &w.lives[i]
		if !l.Terminated.IsZero() {
			continue
		}
		group.Go(func() error {
			return answered(asking, func() (err error) {
				if l.Proxy, err = w.sight.Get(asking, namespace, l.Name); err == nil {
					l.Timeline, err = w.sight.Timeline(asking, namespace, l.Name)
				}
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return evidence{}, err
	}
	e := w.e
	e.Bounds, e.End, e.Lives, e.Refused = allowed(), time.Now(), w.lives, w.cloud.failed.Load()
	e.Held, e.Log = w.cloud.record()
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Sweeps, e.Looks, e.Rounds = w.sweeps, w.looks, w.rounds
	return e, nil
}

// pause waits, unless the run is ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) say(format string, args ...any) { _, _ = fmt.Fprintf(w.out, format+"\n", args...) }
