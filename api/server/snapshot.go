package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/api/discovery"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	refreshPeriod = 5 * time.Second
	// waitedPeriod is between two refreshes while somebody waits for a change.
	waitedPeriod   = time.Second
	refreshTimeout = 4 * time.Second // the least that one has
	// A large fleet is listed page after page, for some tenths of a millisecond each Proxy.
	// The first list of all has so long, and later ones so many times what the last one
	// took, or was given up after: a list that comes late is better than none.
	firstTimeout = 30 * time.Second
	slower       = 3
	// staleAfter marks a list as stale although no refresh has failed: one hangs, or
	// the process slept, or the fleet takes long to list.
	staleAfter = 2 * refreshPeriod
	// unknownAfter is where an old list becomes a guess. It is then no answer at all.
	unknownAfter = 60 * time.Second
)

// snapshot is the list of discovery in memory: one writer, refresh, and any number
// of readers, who never wait for the fleet and never ask it.
type snapshot struct {
	fleet Fleet
	clock Clock
	log   *slog.Logger
	last  atomic.Pointer[list] // nil: never loaded
	took  atomic.Int64         // the last listing, good or not; nanoseconds
	news  news
	// ending is closed when the server takes no new request: who waits is answered.
	ending chan struct{}
	// after is closed when the bans were asked for. No list is there before, and so no
	// process is ready: who asks for a site must not be handed what it bans. Where nobody
	// can tell the bans, the list is there all the same.
	after <-chan struct{}
}

// list is one state of the snapshot. It is never changed.
type list struct {
	at        time.Time // when it was asked for, so true then or later
	failed    bool      // a refresh after it failed
	endpoints []v1.Endpoint
	standings map[standing]int // of every Proxy, for metrics
	proxies   []v1.Proxy       // all of them, redacted, for pages
	// usable is what clients may use, in each format, made when somebody asks first.
	usable map[discovery.Format]func() (discovery.Document, error)
	// parts are what was asked for beyond that, of this list.
	parts *parts
	// instances are all of them, as reports name them, made when there is one.
	instances func() map[string]instance
}

func (s *snapshot) loaded() bool { return s.last.Load() != nil }

// run refreshes at once and then every period, one after the other, until ctx ends.
func (s *snapshot) run(ctx context.Context) {
	ticks, stop := s.clock.Ticker(waitedPeriod)
	defer stop()
	for began := (time.Time{}); ; {
		if now := s.clock.Now(); s.due(now, began) {
			began = now
			s.refresh(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// due reports whether a refresh is, at a tick. A tick may come a little early, and a
// clock may go back.
func (s *snapshot) due(now, began time.Time) bool {
	since := now.Sub(began)
	return s.news.awaited() || since < 0 || since >= refreshPeriod-waitedPeriod/2
}

func (s *snapshot) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, within(s.loaded(), time.Duration(s.took.Load())))
	defer cancel()
	at := s.clock.Now()
	proxies, err := s.fleet.List(ctx, "")
	s.took.Store(int64(s.clock.Now().Sub(at)))
	if err == nil {
		if s.after != nil {
			<-s.after
		}
		s.last.Store(newList(at, proxies))
		s.news.tell()
		return
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "discovery was not refreshed", slog.String("error", err.Error()))
	if last := s.last.Load(); last != nil {
		failed := *last
		failed.failed = true
		s.last.Store(&failed)
		s.news.tell()
	}
}

// within bounds a refresh.
func within(loaded bool, took time.Duration) time.Duration {
	if !loaded {
		return firstTimeout
	}
	return min(max(refreshTimeout, slower*took), firstTimeout)
}

func newList(at time.Time, proxies []v1.Proxy) *list {
	next := &list{
		at: at, endpoints: discovery.Endpoints(proxies), proxies: shown(proxies), standings: standings(proxies),
		parts:     newParts(),
		usable:    map[discovery.Format]func() (discovery.Document, error){},
		instances: sync.OnceValue(func() map[string]instance { return instances(proxies) }),
	}
	usable := sync.OnceValue(func() []v1.Endpoint { return discovery.Part(next.endpoints, discovery.Filter{}.Keeps) })
	for _, format := range discovery.Formats() {
		next.usable[format] = sync.OnceValues(func() (discovery.Document, error) {
			return discovery.Render(format, v1.Discovery{GeneratedAt: at, Proxies: usable()})
		})
	}
	return next
}

// shown are Proxies as answers show them.
func shown(proxies []v1.Proxy) []v1.Proxy {
	all := make([]v1.Proxy, len(proxies))
	for i, p := range proxies {
		all[i] = redacted(p)
	}
	return all
}

// current returns the list, its age, and whether that is too much; or the problem that
// none is known. An unknown list is never an empty one: a client would stop crawling.
func (s *snapshot) current() (now *list, age time.Duration, stale bool, err error) {
	last := s.last.Load()
	if last == nil {
		return nil, 0, false, &problem{kind: discoveryUnknown, detail: "no list has been loaded yet"}
	}
	age = max(0, s.clock.Now().Sub(last.at))
	if age > unknownAfter {
		return nil, age, false, &problem{
			kind:   discoveryUnknown,
			detail: "the last list is from " + last.at.UTC().Format(time.RFC3339) + ", too old to be true",
		}
	}
	return last, age, last.failed || age > staleAfter, nil
}

// document returns what was asked for, and its age.
func (s *snapshot) document(q query) (discovery.Document, time.Duration, error) {
	last, age, stale, err := s.current()
	if err != nil {
		return discovery.Document{}, age, err
	}
	if q.everything && !stale {
		document, err := last.usable[q.format]()
		return document, age, err
	}
	if q.part != (part{}) && !stale {
		document, err := last.parts.document(q.part, func() (discovery.Document, error) {
			return q.render(v1.Discovery{GeneratedAt: last.at, Proxies: discovery.Part(last.endpoints, q.keeps)})
		})
		return document, age, err
	}
	part := v1.Discovery{GeneratedAt: last.at, Stale: stale, Proxies: discovery.Part(last.endpoints, q.keeps)}
	if stale {
		part.AgeSeconds = int(age.Seconds())
	}
	document, err := q.render(part)
	return document, age, err
}

// news wakes those who wait for another list.
type news struct {
	places
	mu   sync.Mutex
	next chan struct{}
}

func (n *news) awaited() bool { return n.taken() > 0 }

// wait returns what is closed when the next list is there.
func (n *news) wait() (next <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}
