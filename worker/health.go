package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/providers/local"
	"github.com/egressfleet/egressfleet/worker/hands"
)

// readTarget checks what proxies are asked for, before any work is taken.
func (p *process) readTarget(context.Context) (err error) {
	if p.target, err = probe.ParseTarget(p.cfg.Health.Target); err != nil {
		return usageError{fmt.Errorf("health.target: %w", err)}
	}
	return nil
}

// prober are the hands of the health rounds.
func (p *process) prober(instances *activities.Instances) *activities.Health {
	return &activities.Health{
		Instances: instances, Fleet: hands.Probed{Client: p.fleet}, Prober: &probe.Prober{}, TargetOf: p.targetOf,
		Metrics: activities.NewHealthMetrics(p.registry),
	}
}

// targetOf is what proxies of a provider are asked for. Those of this machine are asked
// for the echo target of the role api; nobody's site is a target by default.
func (p *process) targetOf(provider string) probe.Target {
	for _, info := range p.providers.Status().Providers {
		if info.Name == provider && info.Type == local.Type {
			return p.echoTarget()
		}
	}
	return p.target
}

// echoTarget is the zero one where this process neither serves the target nor knows its
// certificate.
func (p *process) echoTarget() probe.Target {
	if p.echo != nil {
		host, port, err := net.SplitHostPort(p.addresses.Echo)
		number, convErr := strconv.Atoi(port)
		if errors.Join(err, convErr) == nil {
			return probe.Target{Host: host, Port: number, Roots: p.echo.Roots()}
		}
	}
	if p.cfg.Echo.Certificate == "" {
		return probe.Target{}
	}
	roots, err := echo.ReadRoots(p.cfg.Echo.Certificate)
	if err != nil {
		p.log.Warn("the echo target cannot be asked for", slog.String("setting", config.EnvEchoCertificate),
			slog.String("error", err.Error()))
		return probe.Target{}
	}
	return probe.Target{Host: p.cfg.Echo.Listen().Host, Port: p.cfg.Echo.Port, Roots: roots}
}
