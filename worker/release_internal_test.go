package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// waiting is a fleet whose proxies are told, or that fails so many times.
type waiting struct {
	began time.Time
	mu    sync.Mutex
	fails int
	calls []string // what was asked, and how many seconds after the start
}

func (w *waiting) told(what, provider string) (fleet.Released, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf("%s %s at %.0f", what, provider, time.Since(w.began).Seconds()))
	if w.fails > 0 {
		w.fails--
		return fleet.Released{Found: 2, Told: 1}, fleet.ErrUnavailable
	}
	return fleet.Released{Found: 2, Told: 2}, nil
}

func (w *waiting) Release(_ context.Context, provider string) (fleet.Released, error) {
	return w.told("all", provider)
}

func (w *waiting) ReleaseUnconfigured(_ context.Context, provider string) (fleet.Released, error) {
	return w.told("unconfigured", provider)
}

// releasing runs a releaser in a bubble until it has nothing to do, and returns what
// the fleet was asked and what was logged.
func releasing(t *testing.T, fails int, do func(r *releaser, open func())) (calls []string, log string) {
	t.Helper()
	var text strings.Builder
	synctest.Test(t, func(t *testing.T) {
		w := &waiting{began: time.Now(), fails: fails}
		r := newReleaser(slog.New(slog.NewTextHandler(&text, nil)))
		do(r, func() { r.open(t.Context(), w) })
		r.work.Wait()
		calls = slices.Sorted(slices.Values(w.calls))
	})
	return calls, text.String()
}

var changed = registry.Outcome{Change: registry.Change{
	Kept: []string{"k"}, Added: []string{"a"}, Changed: []string{"c"}, Removed: []string{"r"},
}}

func TestALoadReleasesWhatItTouchedAtOnceAndThoseWhoWereLate(t *testing.T) {
	t.Parallel()
	calls, log := releasing(t, 0, func(r *releaser, open func()) {
		open()
		r.reloaded(changed)
	})
	require.Equal(t, []string{
		"all a at 0", "all a at 30", "all c at 0", "all c at 30", "all r at 0", "all r at 30",
	}, calls)
	require.Contains(t, log, "provider=a found=2 told=2")
}

func TestTheFirstLoadReleasesOnlyWhoHadNoProvider(t *testing.T) {
	t.Parallel()
	first := registry.Outcome{First: true, Change: registry.Change{Added: []string{"a"}}}
	calls, _ := releasing(t, 0, func(r *releaser, open func()) {
		r.reloaded(first)
		<-time.After(7 * time.Second) // until Temporal is reached
		open()
	})
	require.Equal(t, []string{"unconfigured a at 37", "unconfigured a at 7"}, calls)
}

func TestALoadThatFailedReleasesNobody(t *testing.T) {
	t.Parallel()
	calls, log := releasing(t, 0, func(r *releaser, open func()) {
		open()
		r.reloaded(registry.Outcome{Err: errors.New("bad"), Names: []string{"a"}})
	})
	require.Empty(t, calls)
	require.Empty(t, log)
}

func TestAReleaseThatFailsIsRepeatedForSomeMinutes(t *testing.T) {
	t.Parallel()
	one := registry.Outcome{Change: registry.Change{Added: []string{"a"}}}
	calls, log := releasing(t, 2, func(r *releaser, open func()) {
		open()
		r.reloaded(one)
	})
	require.Equal(t, []string{"all a at 0", "all a at 1", "all a at 3", "all a at 33"}, calls)
	require.NotContains(t, log, "level=ERROR")

	calls, log = releasing(t, mostTries, func(r *releaser, open func()) {
		open()
		r.reloaded(one)
	})
	require.Len(t, calls, mostTries+1, "and then the second pass")
	require.Equal(t, 1, strings.Count(log, "level=ERROR"))
	require.Contains(t, log, "found=2 told=1")
	require.Contains(t, log, "look by themselves within an hour")
}

func TestAReleaserEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &waiting{began: time.Now()}
		r := newReleaser(slog.New(slog.DiscardHandler))
		r.open(ctx, w)
		r.reloaded(changed)
		synctest.Wait()
		cancel()
		r.work.Wait()
		require.Len(t, w.calls, 3)
		require.Zero(t, time.Since(w.began))
	})
}
