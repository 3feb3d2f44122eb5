package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// live is a server that runs on loopback.
type live struct {
	*stage
	address string
	stop    context.CancelFunc
	ended   chan error
}

func run(t *testing.T, s *stage, limits server.Limits) *live {
	t.Helper()
	s.server = server.New(s.fleet, server.Options{Clock: s.clock, Limits: limits, Keys: s.keys, TLS: s.tls})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	l := &live{stage: s, address: listener.Addr().String(), stop: stop, ended: make(chan error, 1)}
	go func() { l.ended <- s.server.Run(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, l.wait(t))
	})
	return l
}

// wait returns what Run returned, as often as it is asked.
func (l *live) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-l.ended:
		l.ended <- err
		return err
	case <-time.After(patience):
		require.FailNow(t, "the server does not end")
		return nil
	}
}

// raw sends bytes as they are and returns the first answer and the connection.
func (l *live) raw(t *testing.T, sent string) (*http.Response, net.Conn) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, sent)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer, conn
}

// tick sends one tick; it is taken only when the refresh before it has ended.
func (l *live) tick(t *testing.T) {
	t.Helper()
	select {
	case l.clock.ticks <- l.clock.Now():
	case <-time.After(patience):
		require.FailNow(t, "nobody takes the tick")
	}
}

func TestRunRefreshesAtOnceAndEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(pool()...), server.Limits{})
	l.tick(t) // the first refresh has ended
	require.Equal(t, 200, l.ask(t, "GET", "/readyz", "").Code)
	require.Len(t, l.discovery(t).Proxies, 3)
	l.fleet.set(func(f *fakeFleet) { f.proxies = nil })
	for range 4 {
		l.clock.move(time.Second)
		l.tick(t)
	}
	require.Len(t, l.discovery(t).Proxies, 3, "nobody waits for news")
	l.fleet.set(func(f *fakeFleet) { require.Len(t, f.lists, 1) })
	l.clock.move(time.Second)
	l.tick(t)
	l.tick(t) // the refresh of the tick before has ended
	require.Empty(t, l.discovery(t).Proxies)
	l.fleet.set(func(f *fakeFleet) { require.Len(t, f.lists, 2) })
}

func TestARefreshNeverOverlapsItself(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.fleet.hang = true
	l := run(t, s, server.Limits{})
	require.Eventually(t, func() bool {
		l.fleet.mu.Lock()
		defer l.fleet.mu.Unlock()
		return len(l.fleet.lists) == 1
	}, patience, time.Millisecond)
	select {
	case l.clock.ticks <- birth:
		require.FailNow(t, "a tick was taken while a refresh was running")
	default:
	}
	l.fleet.set(func(f *fakeFleet) { require.Len(t, f.lists, 1) })
}

func TestRunEndsInOrder(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(), server.Limits{})
	l.tick(t)
	answer, _ := l.raw(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.Equal(t, 200, answer.StatusCode)
	l.stop()
	require.NoError(t, l.wait(t))
	refused(t, l.address)
	select {
	case l.clock.ticks <- birth:
		require.FailNow(t, "the refresher outlives the server")
	default:
	}
}

func TestRunTellsWhenItCannotServe(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.ErrorIs(t, newStage().server.Run(t.Context(), listener), net.ErrClosed)
}

// refused waits until nobody listens at an address.
func refused(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, patience, time.Millisecond)
}

func TestARunningRequestIsAnsweredWhileTheServerEnds(t *testing.T) {
	t.Parallel()
	s := newStage()
	slow := &slowFleet{fakeFleet: s.fleet, entered: make(chan struct{}), release: make(chan struct{})}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.New(slow, server.Options{Clock: s.clock}).Run(ctx, listener) }()
	status := make(chan int, 1)
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+proxyA, nil)
		answer, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(r)
		if err != nil {
			status <- 0
			return
		}
		_ = answer.Body.Close()
		status <- answer.StatusCode
	}()
	<-slow.entered
	stop()
	refused(t, listener.Addr().String())
	select {
	case err := <-ended:
		require.FailNow(t, "the server ended before its request", err)
	default:
	}
	close(slow.release)
	require.Equal(t, 200, <-status)
	require.NoError(t, <-ended)
}

// slowFleet holds every Get until it is released.
type slowFleet struct {
	*fakeFleet
	entered, release chan struct{}
}

func (f *slowFleet) Get(context.Context, string, string) (v1.Proxy, error) {
	f.entered <- struct{}{}
	<-f.release
	return running("default", "a", "203.0.113.7"), nil
}
