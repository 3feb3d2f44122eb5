//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/program"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// lose takes the database of Temporal away, for good, while all instances go on. What there
// is afterwards knows nothing of them but what they are marked with.
func (w *world) lose(ctx context.Context) error {
	before, err := w.shown(ctx, 0)
	if err != nil {
		return err
	}
	past := len(w.cloud.History())
	if err := w.killServers(); err != nil {
		return err
	}
	if err := w.database.lose(ctx); err != nil {
		return err
	}
	w.say("the database of Temporal is lost")
	if err := w.begin(ctx); err != nil {
		return err
	}
	if err := w.collect(ctx); err != nil {
		return err
	}
	if err := w.adopt(ctx, before); err != nil {
		return err
	}
	for _, h := range w.cloud.History()[past:] {
		w.Touched = append(w.Touched, touched(h))
	}
	return nil
}

func (w *world) killServers() error {
	for _, s := range w.servers {
		if err := s.Kill(); err != nil {
			return err
		}
	}
	return nil
}

func touched(h gcefake.Happening) string {
	what := "deleted"
	if h.Came {
		what = "created"
	}
	return fmt.Sprintf("%s/%s was %s", h.Zone, h.Name, what)
}

// begin does what an operator does: ends the fleet, makes a new database, and begins with
// it. Which build is current was known to the old one only.
func (w *world) begin(ctx context.Context) error {
	if err := w.stopFleet(ctx); err != nil {
		return err
	}
	if err := w.database.create(ctx); err != nil {
		return err
	}
	if err := w.startServers(ctx); err != nil {
		return err
	}
	if err := w.startFleet(ctx); err != nil {
		return err
	}
	if err := w.makeCurrent(ctx, newest()); err != nil {
		return err
	}
	w.say("everything is up again, with a new database")
	return nil
}

// stopFleet ends the workers and the APIs as a supervisor does. What workers have failed is
// counted before.
func (w *world) stopFleet(ctx context.Context) error {
	var group errgroup.Group
	for n := range pairs {
		if err := w.countFailed(ctx, n); err != nil {
			return err
		}
		for _, p := range []*program.Program{w.workers[n], w.apis[n]} {
			group.Go(func() error {
				_, err := p.Stop()
				return err
			})
		}
	}
	return group.Wait()
}

// ageless lets orphan collection judge instances of any age: those of this run are minutes
// old, and it would not look at them.
const ageless = time.Millisecond

// collect runs orphan collection, which has to look at every instance, and keep it.
func (w *world) collect(ctx context.Context) error {
	var r gc.Result
	if err := w.fleet.RunSweep(ctx, fleet.OrphanGC(), gc.Input{MinAge: ageless}, &r); err != nil {
		return fmt.Errorf("orphan collection: %w", err)
	}
	doubts := 0
	for _, s := range r.Sweeps {
		if s.Fault != nil {
			return fmt.Errorf("orphan collection of %s: %s", s.Provider, s.Fault.Text)
		}
		w.Collected += s.Deleted
		doubts += s.Doubts
	}
	if doubts != proxies {
		w.Weak = append(w.Weak, fmt.Sprintf("orphan collection doubted %d of %d instances", doubts, proxies))
	}
	w.say("orphan collection has doubts about %d instances, and deleted %d", doubts, w.Collected)
	return nil
}

// end deletes all proxies, and waits until nothing is left at the backend.
func (w *world) end(ctx context.Context) error {
	if err := w.each(ctx, func(ctx context.Context, c *customer) error { return c.remove(ctx) }); err != nil {
		return err
	}
	if err := w.settle(ctx, "after all were deleted"); err != nil {
		return err
	}
	for n := range pairs {
		if err := w.countFailed(ctx, n); err != nil {
			return err
		}
	}
	w.say("workers that failed workflow tasks after the storm: %d", len(w.Failed))
	return nil
}
