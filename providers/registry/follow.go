package registry

import (
	"context"
	"log/slog"
	"time"
)

const (
	// quiet is how long nothing may change before the files are read: who writes one
	// writes it in pieces, and who swaps one takes it away for a moment.
	quiet = 300 * time.Millisecond
	// longestUnrest is when they are read all the same.
	longestUnrest = 3 * time.Second
	// pollEvery is how often they are read without any event: events get lost where the
	// kernel's watches have run out, and on file systems of other machines.
	pollEvery = 15 * time.Second
)

// Watcher tells that files may have changed. Telling too much costs a look; telling
// too little, the time until the next poll.
type Watcher interface {
	// Watch names the directory entries that matter, in the place of those before.
	Watch(entries []string) error
	// Changed has a value when one of them may have changed since it was last taken.
	Changed() <-chan struct{}
	Close() error
}

// Follow loads the file whenever it, or a credential file that a provider names, has
// changed, until ctx ends. A nil watcher leaves it to the poll alone.
func (l *Live) Follow(ctx context.Context, w Watcher) {
	f := follower{live: l, watcher: w}
	if w != nil {
		f.changed = w.Changed()
	}
	poll := time.NewTicker(l.opts.Poll)
	defer poll.Stop()
	f.watch()
	f.wait(time.Now()) // for what happened before it was watched
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			f.wait(time.Now())
		case <-f.settled:
			f.catchUp(ctx)
		case <-poll.C:
			f.catchUp(ctx)
		}
	}
}

// follower is what Follow remembers between two events.
type follower struct {
	live    *Live
	watcher Watcher
	changed <-chan struct{}
	settled <-chan time.Time // nil while nothing has changed
	first   time.Time        // of the changes that are waited out
	fault   string           // of the watcher, as it was logged
}

// wait waits for quiet, once more with every change, but not for ever.
func (f *follower) wait(now time.Time) {
	if f.settled == nil {
		f.first = now
	}
	f.settled = time.After(min(quiet, longestUnrest-now.Sub(f.first)))
}

// catchUp watches what the files are now, and loads them if they are not as they were.
// In this order: what changes in between is told.
func (f *follower) catchUp(ctx context.Context) {
	f.settled = nil
	f.watch()
	if f.live.stale() {
		_ = f.live.Load(ctx) // it is told through Reloaded
		f.watch()
	}
}

func (f *follower) watch() {
	if f.watcher == nil {
		return
	}
	fault := ""
	if err := f.watcher.Watch(f.live.files().places()); err != nil {
		fault = err.Error()
	}
	if fault != "" && fault != f.fault {
		f.live.opts.Logger.Warn("changes of the providers' files are seen by looking only",
			slog.Duration("every", f.live.opts.Poll), slog.String("error", fault))
	}
	f.fault = fault
}
