package registry_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/registry"
)

// events is a Watcher whose events a test makes.
type events struct {
	changed chan struct{}
	fail    error
	mu      sync.Mutex
	watched []string
}

func (e *events) Watch(entries []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watched = entries
	return e.fail
}

func (e *events) Changed() <-chan struct{} { return e.changed }
func (e *events) Close() error             { return nil }

// followed runs a test in a bubble, whose time stands still until everybody waits, on
// a file that is followed by injected events.
func followed(t *testing.T, fail error, do func(b *bench, e *events)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, e := newBench(t), &events{changed: make(chan struct{}), fail: fail}
		b.configure(one)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.live.Follow(ctx, e) }()
		pass(time.Second)
		do(b, e)
		cancel()
		<-ended
	})
}

// pass lets time go by in the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// told is the news that is there now.
func (b *bench) told() (o registry.Outcome) {
	b.t.Helper()
	select {
	case o = <-b.heard:
	default:
		require.FailNow(b.t, "there is no news")
	}
	return o
}

// one is the file as it is first, two has another provider.
const (
	one = `providers: [{name: a, type: vault}]`
	two = `providers: [{name: a, type: vault}, {name: b, type: vault}]`
)

func TestAChangeIsReadOnceAllIsQuiet(t *testing.T) {
	followed(t, nil, func(b *bench, e *events) {
		b.write("providers.yaml", "providers: [") // the first half
		for range 3 {
			e.changed <- struct{}{}
			pass(200 * time.Millisecond)
			require.Empty(b.t, b.heard, "somebody is still writing")
		}
		b.write("providers.yaml", two)
		e.changed <- struct{}{}
		pass(300 * time.Millisecond)
		o := b.told()
		require.NoError(b.t, o.Err, "no half was ever read")
		require.Equal(b.t, []string{"b"}, o.Added)
	})
}

func TestAFileThatNeverRestsIsReadAllTheSame(t *testing.T) {
	followed(t, nil, func(b *bench, e *events) {
		b.write("providers.yaml", two)
		for range 29 {
			e.changed <- struct{}{}
			pass(100 * time.Millisecond)
		}
		require.Empty(b.t, b.heard)
		e.changed <- struct{}{}
		pass(100 * time.Millisecond)
		require.Equal(b.t, []string{"b"}, b.told().Added)
	})
}

func TestAnEventWithoutAChangeLoadsNothing(t *testing.T) {
	followed(t, nil, func(b *bench, e *events) {
		e.changed <- struct{}{}
		pass(time.Minute)
		require.Empty(b.t, b.heard)
	})
}

func TestAChangeWithoutAnEventIsFoundByThePoll(t *testing.T) {
	followed(t, errors.New("no space left on device"), func(b *bench, _ *events) {
		b.write("providers.yaml", two)
		pass(13 * time.Second)
		require.Empty(b.t, b.heard)
		pass(2 * time.Second)
		require.Equal(b.t, []string{"b"}, b.told().Added)
	})
}

func TestAFileThatVanishesForAMomentIsNoFault(t *testing.T) {
	followed(t, nil, func(b *bench, e *events) {
		require.NoError(b.t, os.Remove(b.path("providers.yaml")))
		e.changed <- struct{}{}
		pass(100 * time.Millisecond)
		b.write("providers.yaml", two)
		e.changed <- struct{}{}
		pass(time.Second)
		require.NoError(b.t, b.told().Err)
		require.Empty(b.t, b.heard)
	})
}

func TestAFaultIsToldOnceAndMendsWithoutAnEvent(t *testing.T) {
	followed(t, nil, func(b *bench, e *events) {
		b.write("providers.yaml", "providers: [{name: a, type: vault, vault: {size: -1}}]")
		e.changed <- struct{}{}
		pass(time.Second)
		require.ErrorContains(b.t, b.told().Err, "size: -1")
		pass(time.Minute)
		require.Empty(b.t, b.heard, "the same fault at every poll is no news")
		b.write("providers.yaml", one) // as it was loaded before
		pass(16 * time.Second)
		require.NoError(b.t, b.told().Err)
	})
}

func TestWhatIsWatchedFollowsTheProviders(t *testing.T) {
	followed(t, nil, func(b *bench, e *events) {
		watches := func(name string) bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			return strings.Contains(strings.Join(e.watched, "\n")+"\n", "/"+name+"\n")
		}
		require.True(b.t, watches("providers.yaml"))
		require.False(b.t, watches("token"))
		b.write("token", "token-1")
		b.write("providers.yaml", `providers: [{name: a, type: vault, vault: {tokenFile: `+b.path("token")+`}}]`)
		e.changed <- struct{}{}
		pass(time.Second)
		b.told()
		require.True(b.t, watches("token"))

		b.write("token", "token-2")
		e.changed <- struct{}{}
		pass(time.Second)
		require.Equal(b.t, []string{"a"}, b.told().Changed)
		require.Equal(b.t, "token-2", b.one("a").token)
	})
}

func TestAWatcherThatFailsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		live := registry.NewLive(registry.LiveOptions{
			File:   t.TempDir() + "/providers.yaml",
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		live.Follow(ctx, &events{fail: errors.New("no space left on device")})
		require.Equal(t, 1, strings.Count(log.String(), "no space left on device"), log.String())
	})
}
