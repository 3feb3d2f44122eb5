package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"sigs.k8s.io/yaml"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/providers/local"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	devInstallation = "dev"
	devNamespace    = "default" // of Temporal; start-dev always has it
	devProvider     = "local"

	// lookEvery is between two looks at something that is coming up.
	lookEvery = 250 * time.Millisecond
	// lookLimit bounds one look.
	lookLimit = 5 * time.Second
)

// startServer starts Temporal and waits until it answers. What the run is on is started
// before it.
func (r *devRun) startServer(ctx context.Context) (err error) {
	if err := r.startBeside(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.home.path(logDir), homeMode); err != nil {
		return err
	}
	r.server, err = start(program{
		name: "the Temporal dev server", path: filepath.Join(r.settings.binaries, temporalBinary),
		args: r.settings.serverArgs(r.home.path(databaseFile)), env: childEnv(os.Environ()),
		log: r.home.path(logDir, "temporal.log"),
	}, r.died)
	if err != nil {
		return err
	}
	return until(ctx, func(ctx context.Context) error {
		c, err := r.dialServer(ctx)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// serverArgs are the arguments of the dev server. Ports that are not named are
// random ones. WAL without a sync for every commit makes SQLite three times as fast;
// a crash of the whole machine may cost the last moments.
func (s *devSettings) serverArgs(database string) []string {
	args := []string{
		"server", "start-dev", "--ip", loopback,
		"--port", strconv.Itoa(s.temporal.port), "--ui-port", strconv.Itoa(s.ui.port),
		"--db-filename", database,
		"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL",
	}
	for _, key := range proxy.SearchAttributes() {
		args = append(args, "--search-attribute", fmt.Sprintf("%s=%s", key.GetName(), key.GetValueType()))
	}
	return args
}

// dialServer connects to the server of this run, whatever the TEMPORAL_* variables
// say.
func (r *devRun) dialServer(ctx context.Context) (client.Client, error) {
	options := client.Options{
		HostPort: r.settings.temporal.address(), Namespace: devNamespace,
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
	r.keys.Secure(&options)
	return client.DialContext(ctx, options)
}

// startWorker writes what the worker is told, starts it and waits until its API is
// ready.
func (r *devRun) startWorker(ctx context.Context) (err error) {
	if err := r.settings.writeConfig(r.home); err != nil {
		return err
	}
	r.worker, err = start(program{
		name: "the worker", path: filepath.Join(r.settings.binaries, workerBinary),
		args: []string{"--config", r.home.path(workerFile)}, log: r.home.path(logDir, "worker.log"),
		env: append(childEnv(os.Environ(), "CODEC_", "SECRET_"),
			"TEMPORAL_ADDRESS="+r.settings.temporal.address(), "TEMPORAL_NAMESPACE="+devNamespace,
			"TEMPORAL_CONFIG_FILE="+os.DevNull),
	}, r.died)
	if err != nil {
		return err
	}
	return until(ctx, r.api().ready)
}

// childEnv is the environment without what would send a child elsewhere. The log
// settings stay, for whoever looks for a fault, and what else a child is meant to have,
// by the beginnings of its names.
func childEnv(environ []string, meant ...string) (env []string) {
	meant = append(meant, "LOG_")
	for _, line := range environ {
		name, ours := strings.CutPrefix(line, config.EnvPrefix)
		ours = ours && !slices.ContainsFunc(meant, func(beginning string) bool { return strings.HasPrefix(name, beginning) })
		if !ours && !strings.HasPrefix(line, "TEMPORAL_") {
			env = append(env, line)
		}
	}
	return env
}

// writeConfig writes the configuration of the worker, and of its one provider where the
// run has no providers file of its own.
func (s *devSettings) writeConfig(home *devHome) error {
	type m = map[string]any
	providers := s.providers
	if providers == "" {
		providers = home.path(providersFile)
	}
	worker := m{
		"installation": devInstallation, "roles": []string{"worker", "api"}, "providersFile": providers,
		"temporal": m{
			"host": loopback, "port": s.temporal.port, "namespace": devNamespace, "ui": "http://" + s.ui.address(),
		},
		"api": m{"host": loopback, "port": s.api.port}, "metrics": m{"host": loopback, "port": s.metrics.port},
		"echo": m{"port": s.echo.port},
		// Asking the own machine costs nothing, and a person who ends an instance is waiting.
		"steadyPoll": "5s",
		"drift":      m{"interval": "10s"}, "check": m{"interval": "15s"}, "gc": m{"interval": "1m"},
	}
	if err := writeYAML(home.path(workerFile), worker); err != nil || s.providers != "" {
		return err
	}
	return writeYAML(home.path(providersFile), m{"providers": []m{{
		"name": devProvider, "type": local.Type, local.Type: m{"dir": home.path(instancesDir)},
	}}})
}

// writtenBy begins every file that a run writes.
const writtenBy = "# Written by \"starter dev\" at every start; changes are lost.\n"

func writeYAML(path string, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(writtenBy), text...), fileMode)
}

// until looks again and again until look returns nil or ctx ends.
func until(ctx context.Context, look func(context.Context) error) error {
	for {
		within, cancel := context.WithTimeout(ctx, lookLimit)
		err := look(within)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", context.Cause(ctx), err)
		case <-time.After(lookEvery):
		}
	}
}
