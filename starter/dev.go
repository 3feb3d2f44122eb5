package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/egressfleet/egressfleet/internal/codec"
)

// readyLine is the last line of a run that is up; scripts wait for it.
const readyLine = "egressfleet is ready"

func (a *app) devCommand() *cobra.Command {
	var on devBackend
	var beside string
	cmd := &cobra.Command{
		Use: "dev", Short: "Run a whole fleet on this machine, with two sample proxies", Args: exactly(0),
		Long: "dev starts a Temporal server and a worker, applies two sample proxies, waits until both carry\n" +
			"traffic, and runs until Ctrl-C. The state and the instances stay for the next run. \"make run\" calls it.\n" +
			"Variables: EGRESSFLEET_DEV_DIR, EGRESSFLEET_{API,METRICS,TEMPORAL,UI,ECHO}_PORT. The worker also gets\n" +
			"EGRESSFLEET_CODEC_* (encryption) and EGRESSFLEET_SECRET_* (secrets).\n" +
			"With --providers and --proxies it is on another backend. With --beside that backend is a program that\n" +
			"ends with the run, and the state with it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := devSettingsFrom(os.Getenv)
			if err == nil {
				settings.devBackend, err = on.absolute(strings.Fields(beside))
			}
			if err != nil {
				return usageError{err}
			}
			return a.dev(cmd.Context(), settings)
		},
	}
	cmd.Flags().StringVar(&on.providers, "providers", "",
		"providers file of the worker, in the place of the provider local")
	cmd.Flags().StringVar(&on.proxies, "proxies", "", "file with the Proxies to apply, in the place of the samples")
	cmd.Flags().StringVar(&beside, "beside", "", "program beside this one to run as the backend, with its arguments")
	cmd.AddCommand(&cobra.Command{
		Use: "clean", Short: "Remove the instances and the state of dev", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := devSettingsFrom(os.Getenv)
			if err != nil {
				return usageError{err}
			}
			return a.devClean(cmd.Context(), settings)
		},
	})
	return cmd
}

// dev runs until ctx ends, which is no error once all is up, or a process dies.
func (a *app) dev(ctx context.Context, s devSettings) error {
	// In "make run | tee log" a Ctrl-C ends tee first. The write that finds nobody must
	// not end us before what we started.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	keys, err := keysFrom(os.Getenv)
	if err != nil {
		return usageError{err}
	}
	home, err := openHome(s.dir)
	if err != nil {
		return err
	}
	defer home.close()
	if err := errors.Join(s.checkFree(ctx), s.checkBinaries(), s.checkSamples(ctx), s.check()); err != nil {
		return err
	}
	if err := s.forget(home); err != nil {
		return err
	}
	alive, died := context.WithCancelCause(ctx)
	defer died(nil)
	r := &devRun{app: a, settings: s, home: home, keys: keys, died: died}
	err = r.up(alive)
	if err == nil {
		<-alive.Done()
	}
	r.down(ctx)
	left := r.leave(ctx)
	return errors.Join(r.verdict(ctx, alive, err), left)
}

func (s devSettings) checkSamples(ctx context.Context) error {
	proxies, err := s.sampleProxies()
	if err != nil {
		return err
	}
	return checkSamplePorts(ctx, s.samplesFile(), proxies)
}

// verdict says how the run ended: by a process that died, by a step that failed, or
// because somebody wanted it.
func (r *devRun) verdict(ctx, alive context.Context, failed error) error {
	cause := context.Cause(alive)
	if dead, ok := errors.AsType[*deadError](cause); ok {
		return dead
	}
	switch {
	case failed == nil:
		r.say("%s", r.settings.farewell())
		return nil
	case ctx.Err() != nil:
		return errors.New("interrupted before all was up; what was started is stopped")
	default:
		return failed
	}
}

// devRun is one run: what has been started so far.
type devRun struct {
	*app
	settings devSettings
	home     *devHome
	keys     *codec.Ring // what encrypts, for the worker too; there may be none
	died     context.CancelCauseFunc
	beside   *child // what the run is on; there may be none
	server   *child
	worker   *child
}

// say writes a line of progress.
func (r *devRun) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Out, format+"\n", args...)
}

// step is a part of coming up, with the longest it may take on a slow machine.
type step struct {
	what  string
	limit time.Duration
	do    func(context.Context) error
}

// up starts everything and prints the page. It returns the first failure.
func (r *devRun) up(ctx context.Context) error {
	for _, s := range []step{
		{"starting the Temporal dev server", 2 * time.Minute, r.startServer},
		{"starting the worker", 2 * time.Minute, r.startWorker},
		{"applying the sample proxies", time.Minute, r.applySamples},
		{"waiting until they carry traffic", 3 * time.Minute, r.waitSamples},
	} {
		r.say("%s …", s.what)
		within, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("took longer than %s", s.limit))
		err := s.do(within)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return r.printPage(ctx)
}

// down stops what was started: the worker first, so that it can tell Temporal what
// its last activities came to. A second Ctrl-C kills instead of waiting.
func (r *devRun) down(ctx context.Context) {
	hurry, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, c := range []struct {
		*child
		grace time.Duration
	}{{r.worker, workerGrace}, {r.server, serverGrace}, {r.beside, serverGrace}} {
		if c.child != nil && !c.gone() {
			r.say("stopping %s …", c.name)
			c.stop(hurry, c.grace)
		}
	}
}

// checkBinaries looks for the programs beside this one.
func (s devSettings) checkBinaries() error {
	for _, name := range append([]string{temporalBinary, workerBinary}, s.beside[:min(1, len(s.beside))]...) {
		if _, err := os.Stat(filepath.Join(s.binaries, name)); err != nil {
			return fmt.Errorf("%w; \"make run\" builds it", err)
		}
	}
	return nil
}
