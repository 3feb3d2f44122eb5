//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/testsuite/program"
)

// blow is one kill: which process, and how long it is missed.
type blow struct {
	of     *[pairs]*program.Program
	n      int
	host   string
	absent time.Duration
}

const (
	// between two blows the fleet works with everything.
	between = 4 * time.Second
	// A server is missed for longer than the other one takes to take over its shards.
	serverAbsent, otherAbsent = 15 * time.Second, 5 * time.Second
)

// blows are one of each, and then the other one of each.
func (w *world) blows() (all []blow) {
	for n := range pairs {
		all = append(all,
			blow{&w.workers, n, workerHost(n), otherAbsent},
			blow{&w.servers, pairs - 1 - n, serverHost(pairs - 1 - n), serverAbsent},
			blow{&w.apis, n, apiHost(n), otherAbsent})
	}
	return all
}

// storm lets all customers make, change and delete while processes are killed.
func (w *world) storm(ctx context.Context) error {
	before := w.used()
	group, ctx := errgroup.WithContext(ctx)
	over := make(chan struct{})
	group.Go(func() error {
		return w.each(ctx, func(ctx context.Context, c *customer) error { return c.live(ctx, over) })
	})
	group.Go(func() error {
		defer close(over)
		for _, b := range w.blows() {
			if err := wait(ctx, between); err != nil {
				return err
			}
			if err := w.strike(ctx, b); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	w.say("the storm is over: %d requests were accepted, the slowest change or delete after %s", w.acceptedSoFar(),
		w.slowest.Round(time.Millisecond))
	w.say("of processor time and memory they took: %s", told(before, w.used()))
	ctx = context.WithoutCancel(ctx)
	if err := w.settle(ctx, "after the storm"); err != nil {
		return err
	}
	for n := range pairs {
		var err error
		if w.stormy[n], err = w.tellFailed(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// strike kills a process, and starts it again after a while. Meanwhile customers have to be
// served.
func (w *world) strike(ctx context.Context, b blow) error {
	p, before := b.of[b.n], w.acceptedSoFar()
	if b.of == &w.workers {
		if _, err := w.tellFailed(ctx, b.n); err != nil {
			return err
		}
	}
	if err := p.Kill(); err != nil {
		return err
	}
	w.Kills++
	if err := wait(ctx, b.absent); err != nil {
		return err
	}
	meanwhile := w.acceptedSoFar() - before
	w.say("%s was killed; in the %s without it %d requests were accepted", p.Name, b.absent, meanwhile)
	if meanwhile == 0 {
		w.Weak = append(w.Weak, fmt.Sprintf("nobody was served while %s was missed", p.Name))
	}
	if b.of != &w.servers {
		return w.startReady(ctx, p, b.host)
	}
	if err := p.Start(); err != nil {
		return err
	}
	return w.until(ctx, startWithin, p.Name+" listens", func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(b.host, strconv.Itoa(frontendPort)))
		if err != nil {
			return errors.Join(err, p.Alive())
		}
		return c.Close()
	})
}
