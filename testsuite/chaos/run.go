package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sdk "go.temporal.io/sdk/client"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/chaos/remote"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

const (
	proxies = 200
	// A storm lasts so long, and on a slow machine until enough has happened.
	storm, longestStorm = 45 * time.Second, 2 * time.Minute
	// The server goes away some time after the storm has begun.
	earliestOutage, latestOutage = 10 * time.Second, 15 * time.Second
	outage                       = 20 * time.Second
	// settleWithin bounds the wait for the end: a create of unknown outcome is looked
	// for for a minute, and the repetitions of a call may be 20 s apart.
	settleWithin = 2 * time.Minute
	settleEvery  = time.Second
	// What a storm has to have at least, on a slow machine, too.
	leastKills    = 8
	leastAccepted = 300
)

// settings say how much chaos there is.
type settings struct {
	Seed       uint64
	Operations int // of all clients together, as planned
}

// world is one run.
type world struct {
	settings
	out       io.Writer
	dir       string
	backend   *faults
	server    *devserver.Process
	temporal  sdk.Client
	fleet     *fleet.Client
	customers []*customer
	accepted  atomic.Int64
	kills     atomic.Int64
	streams   uint64
}

// random returns the next stream of the seed: each part has one of its own, so that
// one does not depend on the speed of another.
func (w *world) random() *rand.Rand {
	w.streams++
	return rand.New(rand.NewPCG(w.Seed, w.streams)) //nolint:gosec // it has to be the same again
}

// run plays one run and returns what was wrong.
func (w *world) run(ctx context.Context) (verdict, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.open(ctx); err != nil {
		return verdict{}, err
	}
	defer w.close()
	calm := make(chan struct{})
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	failed := make(chan error, workers+1)
	for i := range workers {
		args := []string{roleWorker, w.server.Address, w.socket()}
		s := newSlot(i, w.dir, args, w.random(), &w.kills)
		background.Go(func() { failed <- s.run(ctx, calm) })
	}
	sky := &weather{backend: w.backend.backend, random: w.random(), struck: map[string]bool{}}
	background.Go(func() { sky.run(ctx, calm) })
	if err := w.storm(ctx, failed); err != nil {
		return verdict{}, err
	}
	return w.settle(ctx, calm, failed)
}

// open starts the backend and the server, and makes the clients.
func (w *world) open(ctx context.Context) (err error) {
	w.backend = withFaults(newBackend(), w.random())
	l, err := new(net.ListenConfig).Listen(ctx, "unix", w.socket())
	if err != nil {
		return err
	}
	served := &http.Server{Handler: remote.Handler(w.backend), ReadHeaderTimeout: time.Minute}
	go func() { _ = served.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = served.Close() })
	if w.server, err = devserver.NewProcess(filepath.Join(w.dir, "temporal.db")); err != nil {
		return err
	}
	if err = w.server.Start(ctx); err != nil {
		return err
	}
	w.temporal, err = sdk.DialContext(ctx, sdk.Options{HostPort: w.server.Address, Logger: devserver.Quiet()})
	if err != nil {
		return errors.Join(err, w.server.End(os.Kill))
	}
	w.fleet = fleet.New(w.temporal, installation)
	for i := range proxies {
		w.customers = append(w.customers, &customer{
			fleet: w.fleet, temporal: w.temporal, accepted: &w.accepted, wish: wish{Name: fmt.Sprintf("p%03d", i)},
		})
	}
	return nil
}

func (w *world) close() {
	w.temporal.Close()
	_ = w.server.End(os.Kill)
}

func (w *world) socket() string { return filepath.Join(w.dir, "backend") }

// storm lets the clients work while everything breaks, and returns once the last
// operation that was begun is accepted.
func (w *world) storm(ctx context.Context, failed <-chan error) error {
	raging, end := context.WithCancel(ctx)
	defer end()
	patient, giveUp := context.WithTimeout(ctx, longestStorm+settleWithin)
	defer giveUp()
	var working sync.WaitGroup
	for i, c := range w.customers {
		ops := script(c.wish.Name, share(w.Operations, i), storm, w.random())
		working.Go(func() { c.run(patient, raging, ops) })
	}
	begun := time.Now()
	err := w.outage(ctx, failed)
	for err == nil && !w.over(time.Since(begun)) {
		err = pause(ctx, settleEvery, failed)
	}
	if err != nil {
		giveUp()
	}
	end()
	w.backend.heal()
	working.Wait()
	return err
}

// over reports whether the storm has lasted long enough. On a slow machine it lasts
// until enough has happened.
func (w *world) over(lasted time.Duration) bool {
	enough := w.accepted.Load() >= min(leastAccepted, int64(w.Operations)) && w.kills.Load() >= leastKills
	return lasted >= longestStorm || lasted >= storm && enough
}

// share is how many of n operations the i-th client has.
func share(n, i int) int {
	each := n / proxies
	if i < n%proxies {
		each++
	}
	return each
}

// outage takes the server away and starts it again on the same database.
func (w *world) outage(ctx context.Context, failed <-chan error) error {
	random := w.random()
	var how os.Signal = syscall.SIGTERM
	if random.IntN(2) == 0 {
		how = syscall.SIGKILL
	}
	begins := earliestOutage + time.Duration(random.Int64N(int64(latestOutage-earliestOutage)))
	if err := pause(ctx, begins, failed); err != nil {
		return err
	}
	w.say("the Temporal server is stopped for %s (%s)", outage, how)
	if err := w.server.End(how); err != nil {
		return err
	}
	if err := pause(ctx, outage, failed); err != nil {
		return errors.Join(err, w.server.Start(ctx))
	}
	return w.server.Start(ctx)
}

// pause waits, unless something ends the run.
func pause(ctx context.Context, d time.Duration, failed <-chan error) error {
	select {
	case <-time.After(d):
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle waits until nothing is wrong that time can mend, and that twice in a row.
func (w *world) settle(ctx context.Context, calm chan struct{}, failed <-chan error) (v verdict, err error) {
	close(calm)
	w.say("the storm is over; trouble: %s", w.backend)
	begun := time.Now()
	for good := 0; good < 2; {
		if v, err = w.look(ctx); err != nil {
			return v, err
		}
		if good++; !v.settled() {
			good = 0
		}
		if time.Since(begun) > settleWithin {
			w.say("not settled within %s", settleWithin)
			return v, nil
		}
		if err := pause(ctx, settleEvery, failed); err != nil {
			return v, err
		}
	}
	w.say("settled after %s", time.Since(begun).Round(time.Second))
	return v, nil
}

// look gathers the evidence and judges it.
func (w *world) look(ctx context.Context) (verdict, error) {
	e := evidence{Proxies: map[string]v1.Proxy{}}
	for _, c := range w.customers {
		e.Wishes = append(e.Wishes, c.wish)
		p, err := w.fleet.Get(ctx, namespace, c.wish.Name)
		switch {
		case err == nil:
			e.Proxies[c.wish.Name] = p
		case !errors.Is(err, fleet.ErrNotFound):
			return verdict{}, err
		}
	}
	e.Held, e.Log = w.backend.record()
	return judge(e), nil
}

func (w *world) say(format string, args ...any) { _, _ = fmt.Fprintf(w.out, format+"\n", args...) }
