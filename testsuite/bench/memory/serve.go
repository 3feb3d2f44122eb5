package memory

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/bench/discovery"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// Serve is the argument with which the command is a worker of the part memory-kept.
const Serve = "serve-memory"

const (
	ours = "ours"
	bare = "bare"

	bareQueue = "bare"
	bareType  = "Bare"
	bareEnd   = "end"

	finely = 512 // bytes between two samples of a profile
)

// ServeMain is a worker that keeps so many workflows, of production or bare ones. Each
// line of its input is answered with the bytes that it holds and how many it keeps; it
// ends with its input.
func ServeMain(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet(Serve, flag.ContinueOnError)
	address := flags.String("temporal", "", "host:port of the Temporal server")
	kind := flags.String("kind", ours, ours+" or "+bare)
	kept := flags.Int("kept", 0, "how many workflows are kept")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var cached gauge
	to := client.Options{HostPort: *address, Logger: devserver.Quiet(), MetricsHandler: &cached}
	c, err := client.DialContext(ctx, to)
	if err != nil {
		return err
	}
	defer c.Close()
	worker.SetStickyWorkflowCacheSize(*kept)
	stop, err := work(ctx, c, *kind)
	if err != nil {
		return err
	}
	defer stop()
	dir := os.Getenv(discovery.ProfileEnv)
	if dir != "" {
		runtime.MemProfileRate = finely
	}
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		if _, err := fmt.Fprintln(out, held(), cached.Load()); err != nil {
			return err
		}
		if err := profile(dir, *kind, *kept); err != nil {
			return err
		}
	}
	return nil
}

// profile writes what is held, to a folder; nothing without one.
func profile(dir, kind string, kept int) error {
	if dir == "" {
		return nil
	}
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("memory-%s-%d.mem", kind, kept))) //nolint:gosec // as told
	if err != nil {
		return err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	_, _ = fmt.Fprintf(os.Stderr, "%s: heap=%d stacks=%d\n", kind, m.HeapAlloc, m.StackInuse)
	return errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close())
}

func work(ctx context.Context, c client.Client, kind string) (stop func(), err error) {
	if kind == bare {
		w := worker.New(c, bareQueue, options())
		w.RegisterWorkflowWithOptions(wait, workflow.RegisterOptions{Name: bareType})
		return w.Stop, w.Start()
	}
	timing := proxy.DefaultTiming()
	timing.Busy.Poll, timing.Busy.Max = time.Second, time.Second
	return live.Work(ctx, c, live.Options{
		Backends: map[string]providers.Provider{stage.Provider: still{}}, Timing: timing, Worker: options(),
	})
}

// options are those of production, as far as they matter here.
func options() worker.Options {
	const pollers = 16
	as := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{MaximumNumberOfPollers: pollers})
	return worker.Options{WorkflowTaskPollerBehavior: as, ActivityTaskPollerBehavior: as}
}

// wait is an entity that only waits: for a signal that ends it.
func wait(ctx workflow.Context, _ v1.ProxySpec) error {
	workflow.GetSignalChannel(ctx, bareEnd).Receive(ctx, nil)
	return nil
}

// held is what lives on the heap, and the stacks, after what is not in use was let go of.
// What is free within the pages of the heap is not among it: that is of what went before.
func held() uint64 {
	const settles = 3 // a collection halves stacks that are mostly empty, once each time
	for range settles {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// gauge is how many workflows the SDK says that it keeps.
type gauge struct{ atomic.Int64 }

const cacheSize = "temporal_sticky_cache_size"

func (g *gauge) WithTags(map[string]string) client.MetricsHandler { return g }
func (g *gauge) Counter(string) client.MetricsCounter             { return nothing{} }
func (g *gauge) Timer(string) client.MetricsTimer                 { return nothing{} }
func (g *gauge) Gauge(name string) client.MetricsGauge {
	if name == cacheSize {
		return g
	}
	return nothing{}
}

// Update takes the figure over.
func (g *gauge) Update(v float64) { g.Store(int64(v)) }

type nothing struct{ client.MetricsGauge }

func (nothing) Inc(int64)            {}
func (nothing) Record(time.Duration) {}
func (nothing) Update(float64)       {}

// still is a backend that remembers nothing: what was made runs for ever. It takes no
// memory of the process that is measured.
type still struct{}

const place = "here/"

func (still) Create(_ context.Context, req providers.CreateRequest) (string, error) {
	return place + req.UID, nil
}

func (still) Get(_ context.Context, id string) (*providers.Instance, error) {
	return &providers.Instance{
		ID: id, IP: "192.0.2.1", State: providers.StateRunning, Installation: live.Installation,
		UID: strings.TrimPrefix(id, place), CreatedAt: time.Unix(0, 0),
	}, nil
}

func (still) Delete(context.Context, string) error { return nil }

func (still) ListByTag(context.Context) ([]providers.Instance, error) { return nil, nil }
