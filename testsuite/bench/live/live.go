// Package live runs a whole fleet for benches: a real Temporal server on a file, and the
// workflows and activities of production over a backend that the bench brings, mostly
// testsuite/fake. It may import every room. Start reading at Open; Work is the worker
// alone, for a bench that has it in a process of its own.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	// Namespace is that of every proxy here.
	Namespace = "default"
	// Installation is that of the fleet; the backend has to be of it, too.
	Installation = "bench"

	atOnce     = 16 // requests at a time
	lookEvery  = 50 * time.Millisecond
	doneWithin = 10 * time.Minute // all proxies made, or gone
)

// Options say what a fleet is made of.
type Options struct {
	Backends map[string]providers.Provider // by the name of the provider
	Timing   proxy.Timing                  // of the proxies
	Worker   worker.Options                // what is kept and how much is done at once; zero: the SDK's
	Health   *activities.Health            // nil: nobody probes. Its Fleet is set here
	Server   []string                      // further arguments of `temporal server start-dev`
}

// Fleet is a fleet that runs. The caller closes it.
type Fleet struct {
	*fleet.Client

	Temporal client.Client
	Server   *devserver.Process
	dir      string
	stop     func()
}

// Open starts the server and a worker in this process.
func Open(ctx context.Context, o Options) (*Fleet, error) {
	f, err := Serve(ctx, o.Server...)
	if err != nil {
		return nil, err
	}
	f.stop, err = Work(ctx, f.Temporal, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Serve starts the server alone, with the installation claimed. args are further ones of
// `temporal server start-dev`.
func Serve(ctx context.Context, args ...string) (_ *Fleet, err error) {
	f := &Fleet{stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if f.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, err
	}
	server, err := devserver.NewProcess(filepath.Join(f.dir, "temporal.db"), args...)
	if err != nil {
		return nil, err
	}
	if err := server.Start(ctx); err != nil {
		return nil, err
	}
	f.Server = server
	if f.Temporal, err = dial(ctx, server.Address, client.DefaultNamespace); err != nil {
		return nil, err
	}
	f.Client = fleet.New(f.Temporal, Installation)
	return f, f.EnsureInstallation(ctx)
}

// Work serves the workflows and activities of production until stop is called.
func Work(ctx context.Context, temporal client.Client, o Options) (stop func(), err error) {
	lookup := func(name string) (providers.Provider, func(), bool) {
		p, ok := o.Backends[name]
		return p, func() {}, ok
	}
	names := func() []string { return slices.Sorted(maps.Keys(o.Backends)) }
	asks := fleet.New(temporal, Installation)
	instances := &activities.Instances{Lookup: lookup, Installation: Installation}
	serves := []any{
		&activities.Orphans{Instances: instances, Names: names, Owners: hands.Owners{Client: asks}},
		&activities.Drift{Instances: instances, Names: names, Fleet: hands.Watched{Client: asks}},
		&activities.Checks{Lookup: lookup, Names: names},
	}
	if o.Health != nil {
		health := *o.Health
		health.Instances, health.Fleet = instances, hands.Probed{Client: asks}
		serves = append(serves, &health)
	}
	o.Worker.BackgroundActivityContext = providers.WithLogger(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))
	o.Worker.Interceptors = append(o.Worker.Interceptors, (&proxy.Workflow{Timing: o.Timing}).Direct())
	w := worker.New(temporal, proxy.TaskQueue, o.Worker)
	workflows.Register(w, o.Timing)
	activities.Register(w, instances, serves...)
	return w.Stop, w.Start()
}

// Close ends the worker, the server and its file.
func (f *Fleet) Close() error {
	f.stop()
	var faults []error
	if f.Temporal != nil {
		f.Temporal.Close()
	}
	if f.Server != nil {
		faults = append(faults, f.Server.End(syscall.SIGTERM))
	}
	return errors.Join(append(faults, os.RemoveAll(f.dir))...)
}

// Name is that of the n-th proxy.
func Name(n int) string { return fmt.Sprintf("proxy-%05d", n) }

// Put asks for the proxies from..to-1 with one spec.
func (f *Fleet) Put(ctx context.Context, from, to int, spec v1.ProxySpec) error {
	return each(ctx, from, to, func(ctx context.Context, n int) error {
		wanted := v1.Proxy{Metadata: v1.Metadata{Namespace: Namespace, Name: Name(n)}, Spec: spec}
		_, _, err := f.Apply(ctx, wanted, fleet.Request{ID: "put-" + strconv.Itoa(n) + "-" + spec.Placement.Region})
		return err
	})
}

// Remove asks for the end of the proxies from..to-1.
func (f *Fleet) Remove(ctx context.Context, from, to int) error {
	return each(ctx, from, to, func(ctx context.Context, n int) error {
		_, err := f.Delete(ctx, Namespace, Name(n), "bench", fleet.Request{ID: "remove-" + strconv.Itoa(n)})
		return err
	})
}

// Await waits until Visibility shows so many living proxies, all of them in a phase; 0
// waits until there is none.
func (f *Fleet) Await(ctx context.Context, want int, phase v1.Phase) error {
	ctx, cancel := context.WithTimeout(ctx, doneWithin)
	defer cancel()
	for {
		all, inPhase, err := f.counts(ctx, phase)
		if err == nil && all == want && inPhase == want {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("%d proxies live and %d are %s, and not %d: %w",
				all, inPhase, phase, want, errors.Join(err, ctx.Err()))
		}
	}
}

func each(ctx context.Context, from, to int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := from; n < to; n++ {
		group.Go(func() error { return do(ctx, n) })
	}
	return group.Wait()
}
