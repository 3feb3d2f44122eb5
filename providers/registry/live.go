package registry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// LiveOptions say which file is followed, and who is told.
type LiveOptions struct {
	Options // Entries come from the file
	File    string
	Logger  *slog.Logger // nil discards
	// Poll is how often Follow looks without any event; 0 is every 15 s.
	Poll time.Duration
	// Reloaded is told of every load that brought news: one that worked, or a fault that
	// was not there before. It must not block. nil is fine.
	Reloaded func(Outcome)
}

// Live is the providers of a file as it is now. A load replaces what has changed and
// keeps the rest; one that fails keeps everything. It is safe for concurrent use.
type Live struct {
	opts    LiveOptions
	current atomic.Pointer[Set]
	loading sync.Mutex // one load at a time
	looked  string     // digest of the file that was loaded last; guarded by loading

	mu       sync.Mutex
	loadedAt time.Time // of the last load that worked
	fault    error     // of the last one, if it failed
	since    time.Time // of the fault
}

// NewLive returns a Live that has no provider until it is loaded.
func NewLive(opts LiveOptions) *Live {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Poll = cmp.Or(opts.Poll, pollEvery)
	l := &Live{opts: opts}
	l.current.Store(&Set{})
	return l
}

// Outcome is what a load came to.
type Outcome struct {
	Change
	First bool      // nothing was served before it
	Names []string  // configured now
	At    time.Time // of the load
	Err   error     // then everything is as it was
}

// Lookup returns the provider of a name, and whether it is configured. The caller
// calls release once, when its call has ended: a provider that was replaced meanwhile
// is closed then.
func (l *Live) Lookup(name string) (p providers.Provider, release func(), ok bool) {
	for {
		h, known := l.current.Load().held[name]
		switch {
		case !known:
			return nil, func() {}, false
		case h.enter():
			return h.provider, sync.OnceFunc(func() { l.closed(h.leave()) }), true
		}
		// It was replaced just now: the next set is there already.
	}
}

// closed logs why a provider that was replaced could not be closed.
func (l *Live) closed(err error) {
	if err != nil {
		l.opts.Logger.Warn("a replaced provider was not closed well", slog.String("error", err.Error()))
	}
}

// Names returns the configured names in alphabetical order.
func (l *Live) Names() []string { return l.current.Load().Names() }

// Load reads the file and serves what it says. On an error, which names the file, the
// key and the value, everything stays as it is.
func (l *Live) Load(ctx context.Context) error {
	l.loading.Lock()
	defer l.loading.Unlock()
	former, looked := l.current.Load(), digestOf(l.opts.File)
	next, err := l.read(ctx, former)
	o := Outcome{Err: err, Names: former.Names()}
	if err == nil {
		l.looked = looked
		o.Change, o.Names = compare(former, next), next.Names()
		l.current.Store(next)
		l.warnOfAbsent(o.Touched())
		l.closed(former.leave(next))
	}
	if l.conclude(&o) && l.opts.Reloaded != nil {
		l.opts.Reloaded(o)
	}
	return err
}

func (l *Live) read(ctx context.Context, former *Set) (*Set, error) {
	opts := l.opts.Options
	var err error
	if opts.Entries, err = LoadFile(l.opts.File); err != nil {
		return nil, err
	}
	return build(ctx, opts, former)
}

// conclude keeps what a load came to, and reports whether that is news.
func (l *Live) conclude(o *Outcome) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.At = time.Now()
	o.First = l.loadedAt.IsZero()
	was := l.fault
	l.fault = o.Err
	switch {
	case o.Err == nil:
		l.loadedAt, l.since = o.At, time.Time{}
		return true
	case was == nil:
		l.since = o.At
	}
	return was == nil || was.Error() != o.Err.Error()
}

// stale reports whether something is not as it was when it was loaded. What could not
// be loaded is stale until it can: its cause may be outside of the file.
func (l *Live) stale() bool {
	l.mu.Lock()
	failing := l.fault != nil
	l.mu.Unlock()
	if failing {
		return true
	}
	l.loading.Lock()
	defer l.loading.Unlock()
	return digestOf(l.opts.File) != l.looked || l.credentialsChanged()
}

func (l *Live) credentialsChanged() bool {
	for _, h := range l.current.Load().held {
		if !h.fits(h.entry, h.files().digests()) {
			return true
		}
	}
	return false
}

// files are all that the providers are made of, in no order.
func (l *Live) files() files {
	all := files{l.opts.File}
	for _, h := range l.current.Load().held {
		all = append(all, h.files()...)
	}
	return all
}

// Close closes every provider that is not in use; one that is, is closed when its last
// call ends. Nothing is configured after it.
func (l *Live) Close() error {
	l.loading.Lock()
	defer l.loading.Unlock()
	return l.current.Swap(&Set{}).leave(&Set{})
}

// Change says what became of the providers, by name and sorted.
type Change struct{ Kept, Added, Changed, Removed []string }

// Touched are the names whose provider is not the one that it was.
func (c Change) Touched() []string {
	return slices.Sorted(slices.Values(slices.Concat(c.Added, c.Changed, c.Removed)))
}

// String is for a log line.
func (c Change) String() string {
	return fmt.Sprintf("kept %d, added %v, changed %v, removed %v", len(c.Kept), c.Added, c.Changed, c.Removed)
}

// compare says how one set becomes another. It is pure.
func compare(was, is *Set) (c Change) {
	for _, name := range is.Names() {
		switch former, known := was.held[name]; {
		case !known:
			c.Added = append(c.Added, name)
		case former == is.held[name]:
			c.Kept = append(c.Kept, name)
		default:
			c.Changed = append(c.Changed, name)
		}
	}
	for _, name := range was.Names() {
		if _, stays := is.held[name]; !stays {
			c.Removed = append(c.Removed, name)
		}
	}
	return c
}
