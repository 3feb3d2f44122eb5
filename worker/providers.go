package main

import (
	"context"
	"log/slog"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/decorators"
	"github.com/egressfleet/egressfleet/providers/registry"
)

// tracerName is the name of our spans' source.
const tracerName = "github.com/egressfleet/egressfleet"

// loadProviders constructs the configured providers in their decorators and follows
// their file. A worker does not start with a file that is wrong. A process that only
// serves the API shows it: it calls no provider, and its answers need none. A second
// prober does not read it: credentials of backends have no business outside.
func (p *process) loadProviders(ctx context.Context) error {
	told := p.cfg.ProvidersFile != "" && p.cfg.Plays(config.RoleAPI)
	if !told && !p.cfg.Plays(config.RoleWorker) {
		return nil
	}
	p.releaser = newReleaser(p.log)
	measured := newReloadMetrics(p.registry)
	metrics, tracer := decorators.NewMetrics(p.registry), p.traces.Work().Tracer(tracerName)
	p.providers = registry.NewLive(registry.LiveOptions{
		File: p.cfg.ProvidersFile, Logger: p.log,
		Options: registry.Options{
			Installation: p.cfg.Installation, Factories: all.Factories(),
			Decorate: func(name, _ string, inner providers.Provider) providers.Provider {
				return decorators.Stack(inner, name, tracer, metrics)
			},
		},
		Reloaded: func(o registry.Outcome) {
			measured.observe(o)
			p.logReload(o)
			if p.cfg.Plays(config.RoleWorker) {
				p.releaser.reloaded(o)
			}
		},
	})
	ctx = providers.WithLogger(ctx, p.log)
	if err := p.providers.Load(ctx); err != nil && p.cfg.Plays(config.RoleWorker) {
		return usageError{err}
	}
	p.onStop(p.providers.Close)
	p.followProviders(ctx)
	return nil
}

func (p *process) followProviders(ctx context.Context) {
	watcher, err := registry.NewWatcher()
	if err != nil {
		p.log.Warn("changes of the providers' files are seen by looking only", slog.String("error", err.Error()))
	} else {
		p.onStop(watcher.Close)
	}
	p.onStop(p.background(ctx, "providers", func(ctx context.Context) error {
		p.providers.Follow(ctx, watcher)
		return nil
	}))
}

// logReload is the one line about a load. The error names the file, the key and the
// value, and holds no secret.
func (p *process) logReload(o registry.Outcome) {
	switch {
	case o.Err != nil:
		p.log.Error("the providers file cannot be used; everything stays as it was",
			slog.String("error", o.Err.Error()), slog.Any("providers", o.Names))
	case !o.First:
		p.log.Info("providers were loaded anew", slog.String("change", o.String()))
	}
}
