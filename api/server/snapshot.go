package server

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/api/discovery"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	refreshPeriod  = 5 * time.Second
	refreshTimeout = 4 * time.Second // below the period, so that one ends before the next
	// staleAfter marks a list as stale although no refresh has failed: one hangs, or
	// the process slept. A good list is at most a period and a timeout old.
	staleAfter = 2 * refreshPeriod
	// unknownAfter is where an old list becomes a guess. It is then no answer at all.
	unknownAfter = 60 * time.Second
)

// snapshot is the list of discovery in memory: one writer, refresh, and any number
// of readers, who never wait and never ask the fleet.
type snapshot struct {
	fleet Fleet
	clock Clock
	log   *slog.Logger
	last  atomic.Pointer[list] // nil: never loaded
}

// list is one state of the snapshot. It is never changed.
type list struct {
	at           time.Time // when it was asked for, so true then or later
	failed       bool      // a refresh after it failed
	content      v1.Discovery
	fresh, stale renderings
}

type renderings map[discovery.Format]discovery.Document

func (s *snapshot) loaded() bool { return s.last.Load() != nil }

// run refreshes at once and then every period, one after the other, until ctx ends.
func (s *snapshot) run(ctx context.Context) {
	ticks, stop := s.clock.Ticker(refreshPeriod)
	defer stop()
	for {
		s.refresh(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

func (s *snapshot) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	at := s.clock.Now()
	proxies, err := s.fleet.List(ctx, "")
	if err == nil {
		var next *list
		if next, err = newList(at, proxies); err == nil {
			s.last.Store(next)
			return
		}
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "discovery was not refreshed", slog.String("error", err.Error()))
	if last := s.last.Load(); last != nil {
		failed := *last
		failed.failed = true
		s.last.Store(&failed)
	}
}

// newList renders every format now, so that a request only copies bytes.
func newList(at time.Time, proxies []v1.Proxy) (*list, error) {
	content := v1.Discovery{GeneratedAt: at, Proxies: discovery.Endpoints(proxies)}
	next := &list{at: at, content: content, fresh: renderings{}, stale: renderings{}}
	for _, format := range discovery.Formats() {
		for stale, into := range map[bool]renderings{false: next.fresh, true: next.stale} {
			content.Stale = stale
			document, err := discovery.Render(format, content)
			if err != nil {
				return nil, err
			}
			into[format] = document
		}
	}
	return next, nil
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

// document returns the list in a format, or the part of it that keep wants; nil keeps
// everything, which is rendered already.
func (s *snapshot) document(
	format discovery.Format, keep func(v1.Endpoint) bool,
) (discovery.Document, time.Duration, error) {
	last, age, stale, err := s.current()
	switch {
	case err != nil:
		return discovery.Document{}, age, err
	case keep != nil:
		part := last.content
		part.Stale, part.Proxies = stale, slices.DeleteFunc(slices.Clone(part.Proxies), func(e v1.Endpoint) bool {
			return !keep(e)
		})
		document, err := discovery.Render(format, part)
		return document, age, err
	case stale:
		return last.stale[format], age, nil
	default:
		return last.fresh[format], age, nil
	}
}
