package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/decorators"
	"github.com/egressfleet/egressfleet/testsuite/chaos/remote"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// roleWorker is the argument that makes this program a worker; then follow the address
// of Temporal and the socket of the backend.
const roleWorker = "worker"

// again is how long a worker waits before it asks again for a server that is away.
const again = 500 * time.Millisecond

// timing is the production timing with its waits shortened to fit a run. What is a
// constant of the workflow stays: two NotFounds are seconds apart, and a create of
// unknown outcome is looked for for a minute.
func timing() proxy.Timing {
	t := proxy.DefaultTiming().WithSteadyPoll(10 * time.Second)
	t.Busy = proxy.Pace{Poll: time.Second, Max: time.Second, Lease: 10 * time.Second}
	t.Retry = proxy.Pace{Poll: time.Second, Max: 4 * time.Second, Lease: time.Minute}
	t.Quota = proxy.Pace{Poll: 3 * time.Second, Max: 3 * time.Second, Lease: time.Minute}
	t.Probe = proxy.Pace{Poll: 5 * time.Second, Max: 5 * time.Second, Lease: time.Minute}
	t.Remake = proxy.Pace{Poll: 5 * time.Second, Max: 5 * time.Second}
	t.Create = activities.Limits{Attempt: 5 * time.Second, Total: 40 * time.Second}
	t.Call = activities.Limits{Attempt: 5 * time.Second, Total: 30 * time.Second}
	t.Look = activities.Limits{Attempt: 5 * time.Second, Total: 5 * time.Second}
	t.Outlast = 2 * time.Second
	return t
}

// runWorker works until its standard input ends, which it does with its parent; most
// are killed before that.
func runWorker(address, socket string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	slog.SetDefault(logger)
	for {
		err := work(ctx, address, socket, logger)
		logger.Warn("the server is away", slog.Any("error", err))
		<-time.After(again)
	}
}

// work serves the workflows and activities that the worker of production serves; it
// returns when the server cannot be reached.
func work(ctx context.Context, address, socket string, logger *slog.Logger) error {
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Logger: log.NewStructuredLogger(logger)})
	if err != nil {
		return err
	}
	defer c.Close()
	fatal := make(chan error, 1)
	w := worker.New(c, proxy.TaskQueue, worker.Options{OnFatalError: func(err error) { fatal <- err }})
	metrics := decorators.NewMetrics(prometheus.NewRegistry())
	backend := decorators.Stack(remote.New(providerName, socket), providerName,
		noop.NewTracerProvider().Tracer(""), metrics)
	workflows.Register(w, timing())
	activities.Register(w, &activities.Instances{
		Lookup: func(name string) (providers.Provider, func(), bool) {
			return backend, func() {}, name == providerName
		},
		Installation: installation,
	})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Println(upLine)
	return errors.Join(errors.New("the worker ended"), <-fatal)
}

// upLine is what a worker says once it takes work.
const upLine = "up"
