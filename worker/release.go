package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

const (
	// secondPass is how long after the first one proxies are told once more: a call that
	// was under way with the former provider may have latched its proxy since, and
	// Visibility shows that a moment later.
	secondPass = 30 * time.Second
	// firstPause is before a release that failed is tried again; it doubles up to
	// longestPause. The last try ends the attempt: proxies look by themselves once an hour.
	firstPause   = time.Second
	longestPause = time.Minute
	mostTries    = 15
	// releaseTimeout bounds one try.
	releaseTimeout = time.Minute
)

// releaseFunc is one of the fleet's releases.
type releaseFunc func(ctx context.Context, provider string) (fleet.Released, error)

// latches are what the releaser asks of starter/fleet.
type latches interface {
	Release(ctx context.Context, provider string) (fleet.Released, error)
	ReleaseUnconfigured(ctx context.Context, provider string) (fleet.Released, error)
}

// releaser tells the proxies that wait for another configuration of their provider
// that there is one.
type releaser struct {
	log  *slog.Logger
	work sync.WaitGroup

	mu    sync.Mutex
	start func(registry.Outcome) // nil until there is a fleet
	early []registry.Outcome     // loaded before that
}

func newReleaser(log *slog.Logger) *releaser { return &releaser{log: log} }

// reloaded releases what a load has changed. It does not block, and may be called
// before the fleet is there.
func (r *releaser) reloaded(o registry.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.start == nil {
		r.early = append(r.early, o)
		return
	}
	r.start(o)
}

// open lets the releaser ask the fleet until ctx ends.
func (r *releaser) open(ctx context.Context, f latches) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = func(o registry.Outcome) {
		// A process that starts cannot tell what is new. Who waits for a provider that no
		// worker knew has one now; who waits for anything else goes on waiting.
		release := f.Release
		if o.First {
			release = f.ReleaseUnconfigured
		}
		for _, name := range o.Touched() {
			r.work.Go(func() { r.twice(ctx, name, release) })
		}
	}
	for _, o := range r.early {
		r.start(o)
	}
	r.early = nil
}

// twice releases at once, and those who were late.
func (r *releaser) twice(ctx context.Context, name string, release releaseFunc) {
	r.untilDone(ctx, name, release)
	if pause(ctx, secondPass) {
		r.untilDone(ctx, name, release)
	}
}

// untilDone repeats a release that fails, for some minutes.
func (r *releaser) untilDone(ctx context.Context, name string, release releaseFunc) {
	log, wait := r.log.With(slog.String("provider", name)), firstPause
	for try := 1; ; try++ {
		released, err := within(ctx, name, release)
		counts := []any{slog.Int("found", released.Found), slog.Int("told", released.Told)}
		switch {
		case err == nil && released.Found > 0:
			log.With(counts...).Info("proxies were told that their provider has changed")
			return
		case err == nil:
			return
		case try == mostTries || !pause(ctx, wait):
			log.With(counts...).Error("not every proxy was told that its provider has changed; "+
				"those that were not look by themselves within an hour", slog.String("error", err.Error()))
			return
		}
		wait = min(2*wait, longestPause)
	}
}

func within(ctx context.Context, name string, release releaseFunc) (fleet.Released, error) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	return release(ctx, name)
}

// pause waits, and reports whether ctx has outlasted it.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// openReleaser lets loads release proxies, now that there is a fleet.
func (p *process) openReleaser(ctx context.Context) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.releaser.open(ctx, p.fleet)
	p.onStop(func() error { cancel(); p.releaser.work.Wait(); return nil })
	return nil
}
