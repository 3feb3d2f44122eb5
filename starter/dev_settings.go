package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/egressfleet/egressfleet/internal/config"
)

const (
	loopback       = "127.0.0.1"
	defaultDevDir  = ".dev"
	temporalBinary = "temporal"
	workerBinary   = "worker"

	defaultAPIPort      = 8080
	defaultMetricsPort  = 9464
	defaultTemporalPort = 7233
	defaultUIPort       = 8233
	defaultEchoPort     = 8443
)

// devSettings are what the variables say about a run on this machine.
type devSettings struct {
	dir      string // absolute
	binaries string // where this program is, and beside it the others
	api      devPort
	metrics  devPort
	temporal devPort
	ui       devPort
	echo     devPort
	devBackend
}

// devPort is a port on loopback, what it is for and the variable that moves it.
type devPort struct {
	variable string
	what     string
	port     int
}

func (p devPort) address() string { return net.JoinHostPort(loopback, strconv.Itoa(p.port)) }

// devSettingsFrom reads the variables. Errors name the variable and the value.
func devSettingsFrom(getenv func(string) string) (devSettings, error) {
	s := devSettings{
		api:      devPort{config.EnvAPIPort, "the API", defaultAPIPort},
		metrics:  devPort{config.EnvMetricsPort, "metrics", defaultMetricsPort},
		temporal: devPort{config.EnvTemporalPort, "Temporal", defaultTemporalPort},
		ui:       devPort{config.EnvUIPort, "the Web UI", defaultUIPort},
		echo:     devPort{config.EnvEchoPort, "the echo target of probes", defaultEchoPort},
	}
	var faults []error
	for _, p := range s.ports() {
		var err error
		p.port, err = portFrom(getenv, p.variable, p.port)
		faults = append(faults, err)
	}
	faults = append(faults, s.checkDistinct())
	var err error
	s.dir = getenv(config.EnvDevDir)
	if s.dir == "" {
		s.dir = defaultDevDir
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		faults = append(faults, fmt.Errorf("%s: %w", config.EnvDevDir, err))
	}
	self, err := os.Executable()
	s.binaries = filepath.Dir(self)
	return s, errors.Join(append(faults, err)...)
}

func (s *devSettings) ports() []*devPort {
	return []*devPort{&s.api, &s.metrics, &s.temporal, &s.ui, &s.echo}
}

func (s *devSettings) checkDistinct() error {
	taken := map[int]string{}
	for _, p := range s.ports() {
		if other, twice := taken[p.port]; twice {
			return fmt.Errorf("%s: \"%d\" is the port of %s, too", p.variable, p.port, other)
		}
		taken[p.port] = p.variable
	}
	return nil
}

// checkFree returns an error about every port that something else listens on.
func (s *devSettings) checkFree(ctx context.Context) error {
	var faults []error
	for _, p := range s.ports() {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address())
		if err != nil {
			faults = append(faults, fmt.Errorf(
				"port %d for %s is in use on %s: stop what uses it, or set %s to another port (%w)",
				p.port, p.what, loopback, p.variable, err))
			continue
		}
		_ = l.Close()
	}
	return errors.Join(faults...)
}

// portFrom reads a port from a variable.
func portFrom(getenv func(string) string, variable string, fallback int) (int, error) {
	text := getenv(variable)
	if text == "" {
		return fallback, nil
	}
	port, err := config.ParsePort(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", variable, err)
	case port == 0:
		return 0, fmt.Errorf("%s: \"0\" is no port that can be found again", variable)
	default:
		return port, nil
	}
}
