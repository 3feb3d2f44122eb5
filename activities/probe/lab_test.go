package probe_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/echo"
)

// patience is longer than anything on loopback takes.
const patience = 10 * time.Second

// generous lets every step that goes well end.
func generous() probe.Limits {
	return probe.Limits{Dial: patience, Answer: patience, Handshake: patience, Request: patience, Total: 4 * patience}
}

// impatient is for tests in which a proxy does not answer.
func impatient() probe.Limits {
	l := generous()
	l.Answer = 300 * time.Millisecond
	return l
}

// listener opens a port on loopback until the test ends.
func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// target is an echo for target.example, wherever the prober dials it.
type target struct {
	probe.Target
	address string // where it really is
}

var theEcho = sync.OnceValues(func() (*echo.Server, error) {
	return echo.New("target.example", "127.0.0.1", "::1", "192.0.2.1", "servfail.invalid")
})

func newTarget(t *testing.T) target {
	t.Helper()
	server, err := theEcho()
	require.NoError(t, err)
	return serveEcho(t, server)
}

func serveEcho(t *testing.T, server *echo.Server) target {
	t.Helper()
	l := listener(t)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { ended <- server.Serve(ctx, l, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return target{probe.Target{Host: "target.example", Port: 443, Roots: server.Roots()}, l.Addr().String()}
}

// dialer sends the target's address where the target is, or nowhere where that is "".
func (x target) dialer(direct string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == x.Address() {
			if direct == "" {
				return nil, errors.New("no route")
			}
			address = direct
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// serve hands each connection to talk, until the test ends.
func serve(t *testing.T, talk func(net.Conn)) probe.Proxy {
	t.Helper()
	l := listener(t)
	var open sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			open.Go(func() {
				defer func() { _ = conn.Close() }()
				talk(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		open.Wait()
	})
	return probe.Proxy{Address: l.Addr().String()}
}

// readRequest reads a request's head, byte by byte so that nothing after it is taken.
func readRequest(conn net.Conn) string {
	var b strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(b.String(), "\r\n\r\n") {
		if _, err := conn.Read(one); err != nil {
			break
		}
		b.Write(one)
	}
	return b.String()
}

// splice carries bytes between a client and an address until either ends.
func splice(conn net.Conn, address string) {
	far, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	go func() {
		_, _ = io.Copy(far, conn)
		_ = far.Close()
	}()
	_, _ = io.Copy(conn, far)
}

// tunnelTo is a proxy that works: whatever is asked for, it is address.
func tunnelTo(address string) func(net.Conn) {
	return func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		splice(conn, address)
	}
}

// answers is a proxy that says text to everybody and closes.
func answers(text string) func(net.Conn) {
	return func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, text)
	}
}

// hang reads what is sent and never answers.
func hang(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
