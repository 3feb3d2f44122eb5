package local

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyClientsOfThisMachineAreLetIn(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:1":          true,
		"127.64.0.9:65535":     true,
		"[::1]:1":              true,
		"[::ffff:127.0.0.1]:1": true,
		"192.0.2.1:1":          false,
		"10.0.0.1:1":           false,
		"0.0.0.0:1":            false,
		"[::]:1":               false,
		"[::ffff:192.0.2.1]:1": false,
		"[2001:db8::1]:1":      false,
		"[fe80::1%eth0]:1":     false,
		"128.0.0.1:1":          false,
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
			require.Equal(t, want, fromLoopback(at))
		})
	}
	require.False(t, fromLoopback(&net.UnixAddr{Name: "127.0.0.1:1x"}), "what is no address")
}

// caller is a connection from somewhere.
type caller struct {
	net.Conn
	from   netip.AddrPort
	closed bool
}

func (c *caller) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }
func (c *caller) Close() error         { c.closed = true; return nil }

// queue is a listener with callers in it.
type queue struct {
	net.Listener
	callers []*caller
}

func (q *queue) Accept() (net.Conn, error) {
	if len(q.callers) == 0 {
		return nil, io.EOF
	}
	c := q.callers[0]
	q.callers = q.callers[1:]
	return c, nil
}

func TestTheGateClosesStrangersAndGoesOn(t *testing.T) {
	t.Parallel()
	stranger := &caller{from: netip.MustParseAddrPort("192.0.2.1:5")}
	client := &caller{from: netip.MustParseAddrPort("127.0.0.1:5")}
	g := gate{Listener: &queue{callers: []*caller{stranger, client, stranger}}}
	got, err := g.Accept()
	require.NoError(t, err)
	require.Equal(t, client.RemoteAddr(), got.RemoteAddr())
	require.True(t, stranger.closed)
	require.False(t, client.closed)
	_, err = g.Accept()
	require.ErrorIs(t, err, io.EOF)
}

// openTunnel runs a proxy with a short idle time in this process, and returns both
// ends of a tunnel through it.
func openTunnel(t *testing.T, idle time.Duration) (client, target net.Conn) {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	front, back := listen(), listen()
	server := newProxyServer(front.Addr(), idle, slog.New(slog.DiscardHandler))
	go func() { _ = server.serve(front) }()
	t.Cleanup(func() { server.end(context.WithoutCancel(t.Context()), 0) })

	client, err := net.Dial("tcp", front.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	_, err = fmt.Fprintf(client, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\nearly", back.Addr())
	require.NoError(t, err)
	target, err = back.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = target.Close() })
	for _, c := range []net.Conn{client, target} {
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(client, 16), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	early := make([]byte, len("early"))
	_, err = io.ReadFull(target, early)
	require.NoError(t, err)
	require.Equal(t, "early", string(early), "what came with the CONNECT is not lost")
	return client, target
}

func TestAnIdleTunnelIsClosedAtBothEnds(t *testing.T) {
	t.Parallel()
	client, target := openTunnel(t, time.Second)
	for _, end := range []net.Conn{client, target} {
		_, err := end.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "closed, and not only silent")
	}
}

func TestATunnelWithTrafficInOneDirectionStays(t *testing.T) {
	t.Parallel()
	const idle = time.Second
	client, target := openTunnel(t, idle)
	began := time.Now()
	beat := time.NewTicker(idle / 20)
	defer beat.Stop()
	for time.Since(began) < 5*idle/2 {
		<-beat.C
		_, err := target.Write([]byte{1})
		require.NoError(t, err)
		_, err = io.ReadFull(client, make([]byte, 1))
		require.NoError(t, err)
	}
}

func TestAHalfCloseGoesThrough(t *testing.T) {
	t.Parallel()
	client, target := openTunnel(t, time.Minute)
	require.NoError(t, client.(*net.TCPConn).CloseWrite())
	_, err := target.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = target.Write([]byte("still"))
	require.NoError(t, err)
	got := make([]byte, len("still"))
	_, err = io.ReadFull(client, got)
	require.NoError(t, err)
	require.Equal(t, "still", string(got))
}

func TestTheLogOfAProcessIsBounded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &cappedWriter{to: &out, left: 10}
	for range 5 {
		n, err := w.Write([]byte("1234"))
		require.NoError(t, err)
		require.Equal(t, 4, n, "nobody is told")
	}
	require.Equal(t, "12341234", out.String())
}

// socket tells whether somebody did something with it.
type socket struct {
	syscall.RawConn
	touched bool
}

func (s *socket) Control(func(uintptr)) error { s.touched = true; return nil }

func TestOnlyTargetsOfThisMachineSeeTheAddress(t *testing.T) {
	t.Parallel()
	out := newEgress(&net.TCPAddr{IP: net.IPv4(127, 64, 0, 9), Port: 3128}, time.Minute)
	for name, c := range map[string]struct {
		network, address string
		want             bool
	}{
		"the loopback":             {"tcp4", "127.0.0.1:80", true},
		"all of it":                {"tcp4", "127.200.3.4:80", true},
		"the loopback of IPv6":     {"tcp6", "[::1]:80", false},
		"an address outside":       {"tcp4", "192.0.2.1:80", false},
		"an IPv6 address outside":  {"tcp6", "[2001:db8::1]:80", false},
		"an address that is no IP": {"tcp4", "localhost:80", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := new(socket)
			require.NoError(t, out.dialer.Control(c.network, c.address, s))
			require.Equal(t, c.want, s.touched)
		})
	}
}

func TestBadGatewaySaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		code int
		says string
	}{
		"no such name": {
			&net.DNSError{Err: "no such host", Name: "nobody.invalid", IsNotFound: true},
			http.StatusBadGateway, "nobody.invalid",
		},
		"refused":               {syscall.ECONNREFUSED, http.StatusBadGateway, "refused"},
		"a dial that took long": {fmt.Errorf("dial: %w", os.ErrDeadlineExceeded), http.StatusGatewayTimeout, "timed out"},
		"a call that took long": {context.DeadlineExceeded, http.StatusGatewayTimeout, "timed out"},
		"nothing is known":      {nil, http.StatusBadGateway, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, text := badGateway(c.err)
			require.Equal(t, c.code, code)
			require.Contains(t, text, c.says)
		})
	}
}
