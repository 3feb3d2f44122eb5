package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"

	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/internal/telemetry"
	"github.com/egressfleet/egressfleet/internal/tracing"
	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// Options are what Run is given besides its configuration.
type Options struct {
	Log io.Writer // required
	// Environment holds the TEMPORAL_* variables; nil is the process's own.
	Environment envconfig.EnvLookup
	// DialPatience is how long a Temporal that is not there is waited for, and so long again
	// a namespace that it does not know; 0 is a minute.
	DialPatience time.Duration
	// Up is called once everything is served; nil is fine.
	Up func(Addresses)
}

// Addresses are where a process really listens, host:port; empty for a role that it
// does not play.
type Addresses struct{ API, Metrics, Echo string }

// Run plays the configured roles until ctx ends, which is no error, or until a part
// fails for good. Then it stops in the reverse order of its start: the API takes no
// new request, activities end, and only then do connections and providers close.
func Run(ctx context.Context, cfg config.Config, opts Options) (err error) {
	p := &process{
		cfg: cfg, opts: opts, registry: telemetry.NewRegistry(), failed: make(chan error, 1),
		log: telemetry.NewLogger(opts.Log, cfg.Log.Level, cfg.Log.Format == config.FormatJSON),
	}
	for _, warning := range cfg.Warnings {
		p.log.Warn(warning)
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	for _, step := range p.steps() {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil // the fault is that somebody ended us
			}
			return err
		}
	}
	p.up.Store(true)
	p.announce()
	select {
	case <-ctx.Done():
		p.log.Info("stopping")
		return nil
	case err := <-p.failed:
		return err
	}
}

// process is what has been started so far.
type process struct {
	cfg      config.Config
	opts     Options
	log      *slog.Logger
	registry *prometheus.Registry
	failed   chan error // the first part that ended without being asked
	stops    []func() error
	stopAPI  func() error // before all others, though it is served before Temporal is reached

	traces       *tracing.Traces // nil without
	interceptors []interceptor.WorkerInterceptor

	temporal  client.Client
	fleet     *fleet.Client
	keys      *codec.Ring
	target    probe.Target   // what proxies of other machines are asked for
	providers *registry.Live // nil where the process was told of no file
	releaser  *releaser
	api       net.Listener
	echo      *echo.Server  // what probes of this machine's proxies ask for; nil without the role api
	awaited   *awaitedFleet // what the API asks
	addresses Addresses
	up        atomic.Bool // every step of the start is done
}

// steps are the start, in its order. What can be wrong here, the ports and the
// providers, is told before Temporal is waited for or any work is taken. The API is
// served while it waits: a supervisor must not take an outage of Temporal for a dead
// process.
func (p *process) steps() []func(context.Context) error {
	type step = func(context.Context) error
	steps := []step{p.openTraces, p.serveMetrics, p.readKeys}
	add := func(role config.Role, more ...step) {
		if p.cfg.Plays(role) {
			steps = append(steps, more...)
		}
	}
	add(config.RoleAPI, p.listenAPI, p.listenEcho)
	add(config.RoleWorker, p.readTarget)
	steps = append(steps, p.loadProviders)
	add(config.RoleAPI, p.serveAPI)
	steps = append(steps, p.connect)
	add(config.RoleWorker, p.inNamespace(p.prepareNamespace), p.startWorker, p.openReleaser)
	add(config.RoleOutside, p.inNamespace(p.prepareOutside), p.startOutside)
	add(config.RoleAPI, p.openAPI, p.watchSchedules)
	return steps
}

// onStop is called in the reverse order.
func (p *process) onStop(f func() error) { p.stops = append(p.stops, f) }

func (p *process) stop() error {
	var faults []error
	if p.stopAPI != nil {
		faults = append(faults, p.stopAPI())
	}
	for i := len(p.stops) - 1; i >= 0; i-- {
		faults = append(faults, p.stops[i]())
	}
	return errors.Join(faults...)
}

// fail ends the process with an error; the first one counts.
func (p *process) fail(what string, err error) {
	select {
	case p.failed <- fmt.Errorf("%s: %w", what, err):
	default:
	}
}

// background runs serve until stop is called, which waits for its end.
func (p *process) background(
	ctx context.Context, what string, serve func(context.Context) error,
) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx)
		if ctx.Err() == nil {
			p.fail(what, errors.Join(errors.New("ended by itself"), err))
			err = nil // told once
		}
		ended <- err
	}()
	return func() error {
		cancel()
		if err := <-ended; err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
}

func (p *process) serveMetrics(ctx context.Context) error {
	l, err := listen(ctx, p.cfg.Metrics, "metrics", config.EnvMetricsPort)
	if err != nil {
		return err
	}
	p.addresses.Metrics = l.Addr().String()
	p.onStop(p.background(ctx, "metrics", func(ctx context.Context) error {
		return telemetry.ServeMetrics(ctx, l, p.registry, p.up.Load, p.log)
	}))
	return nil
}

func (p *process) connect(ctx context.Context) error {
	server, err := p.cfg.Temporal.Server(p.opts.Environment, p.log)
	if err != nil {
		return err
	}
	server.Options.Logger = log.NewStructuredLogger(p.log)
	// What is sent is small, and each compressor at work is 0.8 MiB.
	server.Options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	p.keys.Secure(&server.Options)
	if err := errors.Join(p.trace(&server.Options), p.measure(&server.Options)); err != nil {
		return err
	}
	p.temporal, err = dial(ctx, server, p.patience(), p.log)
	if err != nil {
		return err
	}
	p.onStop(func() error { p.temporal.Close(); return nil })
	p.cfg.Temporal.Namespace = server.Options.Namespace
	p.log.Info("connected to Temporal", slog.String("address", server.Options.HostPort),
		slog.String("namespace", server.Options.Namespace), slog.String("source", server.From))
	p.fleet = fleet.New(p.temporal, p.cfg.Installation, fleet.WithDataConverter(server.Options.DataConverter))
	return nil
}

func (p *process) patience() time.Duration { return cmp.Or(p.opts.DialPatience, dialPatience) }

// announce is the one line that says what runs where.
func (p *process) announce() {
	var names []string
	if p.providers != nil {
		names = p.providers.Names()
	}
	room := p.capacity()
	p.log.Info("egressfleet is up", slog.String("version", telemetry.Version()),
		slog.String("installation", p.cfg.Installation), slog.String("roles", p.cfg.RoleNames()),
		slog.Any("providers", names), slog.String("api", p.addresses.API),
		slog.String("metrics", p.addresses.Metrics), slog.String("echo", p.addresses.Echo),
		slog.Int64("memoryLimit", heapBound()), slog.Int("workflowsKept", room.workflows),
		slog.Int("workflowTasks", room.tasks), slog.Int("activities", room.activities), slog.Int("pid", os.Getpid()))
	if p.opts.Up != nil {
		p.opts.Up(p.addresses)
	}
}
