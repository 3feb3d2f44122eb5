//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/program"
)

const (
	proxies = 200
	pairs   = 2 // servers of Temporal, workers and APIs
	seed    = 7

	startWithin = time.Minute
	// acceptWithin and settleWithin are generous: this may be a busy machine of two cores.
	acceptWithin = 3 * time.Minute
	settleWithin = 4 * time.Minute
	lookEvery    = time.Second
)

// world is one run.
type world struct {
	out   io.Writer
	begun time.Time
	dir   string // logs and configuration
	root  string // of the module

	cloud         *gcefake.Server
	database      *database
	servers       [pairs]*program.Program
	workers, apis [pairs]*program.Program
	temporal      sdk.Client
	fleet         *fleet.Client
	customers     []*customer
	stormy        [pairs]int // workflow tasks that the workers of now failed in the storm

	mu       sync.Mutex
	accepted int
	slowest  time.Duration // from the first try until a change or a delete was accepted
	evidence
}

// built is the path of a program in bin/ of the module.
func (w *world) built(name string) string { return filepath.Join(w.root, "bin", name) }

// run plays one life and returns the evidence.
func (w *world) run(ctx context.Context) (e evidence, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.root, err = devserver.Root(); err != nil {
		return e, err
	}
	for n := range proxies {
		w.customers = append(w.customers, newCustomer(w, n))
	}
	w.Proxies = proxies
	for _, open := range []func(context.Context) error{w.openCloud, w.openDatabase, w.openServers, w.openFleet} {
		if err := open(ctx); err != nil {
			return e, err
		}
	}
	w.say("two servers of Temporal, two workers and two APIs are up")
	if err := w.live(ctx); err != nil {
		return e, err
	}
	w.History = w.cloud.History()
	for _, i := range w.cloud.Instances() {
		w.Left = append(w.Left, i.GetSelfLink())
	}
	return w.evidence, nil
}

// live is a storm of changes and kills, two rolls of the workers, a rest, an old backup in the
// place of Temporal's databases, their loss, and the end of all proxies. Whatever was not
// ended on purpose has to live then.
func (w *world) live(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		w.storm, w.roll, w.rest, w.restore, w.lose, w.end,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return w.alive()
}

// alive returns an error for each process that has ended by itself.
func (w *world) alive() error {
	errs := []error{w.database.Alive()}
	for n := range pairs {
		errs = append(errs, w.servers[n].Alive(), w.workers[n].Alive(), w.apis[n].Alive())
	}
	return errors.Join(errs...)
}

// each lets all customers do something at the same time.
func (w *world) each(ctx context.Context, do func(context.Context, *customer) error) error {
	return some(ctx, w.customers, do)
}

func some(ctx context.Context, of []*customer, do func(context.Context, *customer) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range of {
		group.Go(func() error { return do(ctx, c) })
	}
	return group.Wait()
}

// accept counts what a customer was promised. A create waits for the end of the proxy
// before, and says nothing about how quick the fleet is.
func (w *world) accept(what string, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted++
	if what != "create" {
		w.slowest = max(w.slowest, after)
	}
}

func (w *world) acceptedSoFar() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accepted
}

// settle waits until the fleet is as its customers were promised. What is not when the time
// is over is lost.
func (w *world) settle(ctx context.Context, when string) error {
	begun := time.Now()
	for {
		astray, err := w.astray(ctx)
		if err == nil && len(astray) == 0 {
			w.say("%s: all are as they were promised, %s after the last word", when, time.Since(begun).Round(time.Second))
			return nil
		}
		if err == nil && time.Since(begun) > settleWithin {
			for _, line := range astray {
				w.Astray = append(w.Astray, when+": "+line)
			}
			return nil
		}
		if time.Since(begun) > settleWithin {
			return fmt.Errorf("%s: %w", when, err)
		}
		if err := wait(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// astray says what is not as it was promised: by the list of each API, by what discovery
// hands out, and at the backend.
func (w *world) astray(ctx context.Context) (lines []string, err error) {
	var wishes []wish
	for _, c := range w.customers {
		wishes = append(wishes, c.wish)
	}
	var there []string
	for _, i := range w.cloud.Instances() {
		there = append(there, i.GetName())
	}
	for n := range pairs {
		shown, err := w.shown(ctx, n)
		if err != nil {
			return nil, err
		}
		discovery := "http://" + apiHost(n) + ":8080/v1/discovery?format=txt"
		_, text, err := ask(ctx, request{Method: http.MethodGet, URL: discovery})
		if err != nil {
			return nil, err
		}
		found := compare(wishes, shown, there)
		if served := strings.Count(text, "\n"); len(found) == 0 && served != len(shown) {
			found = append(found, fmt.Sprintf("discovery hands out %d of %d", served, len(shown)))
		}
		lines = append(lines, found...)
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// shown is what an API lists.
func (w *world) shown(ctx context.Context, n int) ([]v1.Proxy, error) {
	var list struct{ Items []v1.Proxy }
	_, text, err := ask(ctx, request{Method: http.MethodGet, URL: "http://" + apiHost(n) + ":8080/v1/proxies"})
	if err != nil {
		return nil, err
	}
	return list.Items, json.Unmarshal([]byte(text), &list)
}

// until looks again and again, and returns what was missing when the time is over, or a
// program has ended.
func (w *world) until(ctx context.Context, within time.Duration, what string, is func(context.Context) error) error {
	for begun := time.Now(); ; {
		err := is(ctx)
		if err == nil {
			return nil
		}
		if time.Since(begun) > within || errors.Is(err, program.ErrEnded) {
			return fmt.Errorf("%s: not after %s: %w", what, time.Since(begun).Round(time.Second), err)
		}
		if err := wait(ctx, lookEvery/5); err != nil {
			return err
		}
	}
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

func (w *world) say(format string, args ...any) {
	_, _ = fmt.Fprintf(w.out, "%4ds "+format+"\n", append([]any{int(time.Since(w.begun).Seconds())}, args...)...)
}
