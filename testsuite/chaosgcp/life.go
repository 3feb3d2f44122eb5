package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

const (
	namespace = "default"
	proxies   = 200
	replaced  = 60 // proxies that are replaced during the storm, from the first one on
	preempted = 20 // instances that are taken back
	together  = 20 // requests at a time
	seed      = 7

	storm   = 40 * time.Second
	soldOut = 12 * time.Second // each of two zones, one after the other
	// settleWithin is longer than the two minutes after which the workflow asks again for a
	// delete that was accepted and did not come about.
	settleWithin = 3 * time.Minute
	lookEvery    = time.Second
)

// pace is that of the server: what takes a minute there takes a second here.
func pace() gcefake.Pace {
	return gcefake.Pace{
		Pending: 100 * time.Millisecond, Running: 500 * time.Millisecond, Provisioning: 200 * time.Millisecond,
		Staging: 600 * time.Millisecond, Address: 300 * time.Millisecond, Stopping: 500 * time.Millisecond,
		Deprovisioning: 300 * time.Millisecond, GetLag: 300 * time.Millisecond, ListLag: time.Second,
	}
}

// world is one run.
type world struct {
	out       io.Writer
	cloud     *gcefake.Server
	address   string
	temporal  sdk.Client
	fleet     *fleet.Client
	trouble   *trouble
	unsettled []string
}

// run plays one life and returns the evidence.
func (w *world) run(ctx context.Context) (e evidence, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.trouble = newTrouble(seed)
	stop, err := w.serve(ctx)
	if err != nil {
		return e, err
	}
	defer stop()
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
	w.fleet = fleet.New(w.temporal, installation)
	dismiss, err := w.hire(ctx)
	defer dismiss()
	if err != nil {
		return e, err
	}
	if err := w.live(ctx); err != nil {
		return e, err
	}
	return w.gather(), nil
}

// serve starts the Compute Engine on a port of loopback.
func (w *world) serve(ctx context.Context) (stop func(), err error) {
	w.cloud = gcefake.New(gcefake.Options{Pace: pace()})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.address = "http://" + l.Addr().String()
	web := &http.Server{Handler: w.cloud, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(l) }()
	return func() { _ = web.Close() }, nil
}

// live is birth and change in a storm, calm, and the end of all proxies in another one.
func (w *world) live(ctx context.Context) error {
	if err := w.fleet.EnsureInstallation(ctx); err != nil {
		return err
	}
	w.trouble.begin(w.cloud)
	over := time.Now().Add(storm)
	if err := w.each(ctx, 0, proxies, w.born); err != nil {
		return err
	}
	w.say("%d proxies were made", proxies)
	if err := w.weather(ctx, over); err != nil {
		return err
	}
	w.cloud.Heal()
	w.say("the storm is over")
	if err := w.settle(ctx, "all serve", w.serving); err != nil {
		return err
	}
	w.cloud.DeleteStorm(2, 2)
	w.trouble.begin(w.cloud)
	if err := w.each(ctx, 0, proxies, w.ended); err != nil {
		return err
	}
	if err := wait(ctx, storm/4); err != nil {
		return err
	}
	w.cloud.Heal()
	w.say("the second storm is over")
	return w.settle(ctx, "all are gone", w.gone)
}

// weather is what happens to zones and instances while calls fail.
func (w *world) weather(ctx context.Context, over time.Time) error {
	restore := w.cloud.Zone(region + "-a").Stockout(gcefake.SoldOutLate)
	if err := w.each(ctx, 0, replaced, w.replace); err != nil {
		return err
	}
	if err := wait(ctx, soldOut); err != nil {
		return err
	}
	restore()
	defer w.cloud.Zone(region + "-b").Stockout(gcefake.SoldOutAtOnce)()
	w.preempt()
	return wait(ctx, max(soldOut, time.Until(over)))
}

// each asks for a range of proxies, some at a time.
func (w *world) each(ctx context.Context, from, count int, ask func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for n := from; n < from+count; n++ {
		group.Go(func() error {
			for begun := time.Now(); ; {
				err := ask(ctx, n)
				if err == nil || !errors.Is(err, fleet.ErrUnavailable) || time.Since(begun) > settleWithin {
					return err
				}
				if err := wait(ctx, lookEvery); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

func nameOf(n int) string { return fmt.Sprintf("p%03d", n) }

func (w *world) born(ctx context.Context, n int) error {
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: namespace, Name: nameOf(n)}}
	p.Spec = v1.ProxySpec{Provider: providerName, Port: 3128, Placement: v1.Placement{Region: region}}
	_, _, err := w.fleet.Apply(ctx, p, fleet.Request{ID: "born-" + strconv.Itoa(n)})
	return err
}

func (w *world) replace(ctx context.Context, n int) error {
	_, err := w.fleet.Replace(ctx, namespace, nameOf(n), "chaos", fleet.Request{ID: "replace-" + strconv.Itoa(n)})
	if errors.Is(err, fleet.ErrConflict) {
		return nil // it has no instance yet that could be replaced
	}
	return err
}

func (w *world) ended(ctx context.Context, n int) error {
	_, err := w.fleet.Delete(ctx, namespace, nameOf(n), "chaos", fleet.Request{})
	if errors.Is(err, fleet.ErrNotFound) {
		return nil // it was accepted before
	}
	return err
}

// wait lasts so long, unless the run is ended.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) say(format string, args ...any) { _, _ = fmt.Fprintf(w.out, format+"\n", args...) }

// zoneOf is the last part of a zone's URL.
func zoneOf(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
