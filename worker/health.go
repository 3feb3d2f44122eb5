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
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/providers/local"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/proxy"
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
		Instances: instances, Fleet: probed{p.fleet}, Prober: &probe.Prober{}, TargetOf: p.targetOf,
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

// probed lets a health round ask the fleet.
type probed struct{ *fleet.Client }

func (f probed) Report(ctx context.Context, p v1.Proxy, r activities.HealthReport) error {
	return f.Client.Report(ctx, p, proxy.HealthReport{
		Healthy: r.Healthy, Undecided: r.Undecided, Reason: r.Reason, Message: r.Message, EgressIP: r.EgressIP,
		IP: p.Status.IP,
	})
}

func (f probed) ReportOpenProxy(ctx context.Context, p v1.Proxy, o probe.Openness) error {
	return f.Client.ReportOpenProxy(ctx, p, proxy.OpenProxyReport{
		Status: o.Status, Reason: o.Reason, Message: o.Text, IP: p.Status.IP,
	})
}

// Replace leaves alone what has another instance by now, or none, or is gone.
func (f probed) Replace(ctx context.Context, p activities.Failing, reason, request string) (asked bool, err error) {
	_, err = f.ReplaceInstance(ctx, p.Namespace, p.Name, request, proxy.ReplaceInput{
		Reason: reason, Of: proxy.Subject{UID: p.UID, CreatedAt: p.MadeAt},
	})
	if _, conflict := errors.AsType[*fleet.ConflictError](err); conflict || errors.Is(err, fleet.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
