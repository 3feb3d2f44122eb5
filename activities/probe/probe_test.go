package probe_test

import (
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/echo"
)

func TestAProxyThatAnswersInTheTargetsPlaceIsNotHealthy(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	proxy := serve(t, answers("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	v := p.Probe(t.Context(), x.Target, proxy)
	require.Equal(t, v1.ReasonBadResponse, v.Reason, v.Text)
}

func TestAnExpiredTargetBlamesNoProxy(t *testing.T) {
	t.Parallel()
	stranger, err := echo.New("target.example")
	require.NoError(t, err)
	x, y := newTarget(t), serveEcho(t, stranger)
	p := probe.Prober{Limits: generous(), Dial: x.dialer(y.address)} // directly, it has no good certificate either
	v := p.Probe(t.Context(), x.Target, serve(t, tunnelTo(y.address)))
	require.Equal(t, v1.ReasonInconclusive, v.Reason, v.Text)
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	l := listener(t)
	proxy := probe.Proxy{Address: l.Addr().String()}
	require.NoError(t, l.Close())
	for _, direct := range []string{x.address, ""} {
		p := probe.Prober{Limits: generous(), Dial: x.dialer(direct)}
		v := p.Probe(t.Context(), x.Target, proxy)
		require.Equal(t, v1.ReasonUnreachable, v.Reason, "no target is behind it")
		require.Contains(t, v.Text, "connection refused")
	}
}

func TestWithoutATargetNobodyIsTouched(t *testing.T) {
	t.Parallel()
	p := probe.Prober{Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, io.EOF
	}}
	v := p.Probe(t.Context(), probe.Target{}, probe.Proxy{Address: "192.0.2.7:3128"})
	require.Equal(t, v1.ReasonNoTarget, v.Reason)
	require.False(t, v.Failed())
	require.False(t, p.Control(t.Context(), probe.Target{}).Reached)
}

func TestAFaultOfTheProberBlamesNobody(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	p := probe.Prober{Limits: generous(), Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == x.Address() {
			return new(net.Dialer).DialContext(ctx, network, x.address) // the target is well
		}
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EMFILE}
	}}
	v := p.Probe(t.Context(), x.Target, probe.Proxy{Address: "192.0.2.7:3128"})
	require.Equal(t, v1.ReasonInconclusive, v.Reason)
	require.Contains(t, v.Text, "too many open files")
}

func TestARoundThatEndsBlamesNobody(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	ctx, cancel := context.WithCancel(t.Context())
	proxy := serve(t, func(conn net.Conn) {
		readRequest(conn)
		cancel()
		hang(conn)
	})
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	v := p.Probe(ctx, x.Target, proxy)
	require.Equal(t, v1.ReasonInconclusive, v.Reason)
	require.Contains(t, v.Text, "the round ended first")
}

func TestTheWholeAttemptHasAnEndThoughEachStepIsInTime(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	proxy := serve(t, hang)
	limits := generous()
	limits.Total = 50 * time.Millisecond // every step would wait for patience
	p := probe.Prober{Limits: limits, Dial: x.dialer("")}
	v := p.Probe(t.Context(), x.Target, proxy)
	require.Equal(t, v1.ReasonInconclusive, v.Reason, v.Text)
	require.Less(t, v.Took, patience)
}

func TestATunnelThatCarriesNothingIsNoEgress(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	proxy := serve(t, func(conn net.Conn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		hang(conn)
	})
	limits := generous()
	limits.Handshake = 100 * time.Millisecond
	p := probe.Prober{Limits: limits, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		return x.dialer(x.address)(ctx, network, address)
	}}
	v := p.Probe(t.Context(), x.Target, proxy)
	require.Equal(t, probe.CauseTunnelClosed, v.Cause, v.Text)
	require.Less(t, v.Took, patience, "the handshake has its own end")
}

func TestABannerWithoutAnEndIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	proxy := serve(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "\x4a\x00\x00\x00\x0b8.0.36") // a database
		hang(conn)
	})
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	v := p.Probe(t.Context(), x.Target, proxy)
	require.Equal(t, v1.ReasonBadResponse, v.Reason, v.Text)
	require.Less(t, v.Took, patience)
}

func TestHeadersMayComeLateAndInPieces(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	proxy := serve(t, func(conn net.Conn) {
		readRequest(conn)
		for _, b := range []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: none\r\n\r\n") {
			_, _ = conn.Write([]byte{b}) // no chunk follows: what does is the tunnel's
		}
		splice(conn, x.address)
	})
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	v := p.Probe(t.Context(), x.Target, proxy)
	require.Equal(t, v1.ReasonHealthy, v.Reason, v.Text)
	require.Equal(t, "127.0.0.1", v.EgressIP)
}

func TestWhatAStatusMeans(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	for head, reason := range map[string]string{
		"401 Unauthorized\r\nServer: tinyproxy/1.11.1":                 v1.ReasonAuthRequired,
		"401 Unauthorized\r\nProxy-Authenticate: Basic realm=\"x\"":    v1.ReasonAuthRequired,
		"401 Unauthorized\r\nServer: nginx\r\nWWW-Authenticate: Basic": v1.ReasonRefused,
		"402 Payment Required":              v1.ReasonRefused,
		"429 Too Many Requests":             v1.ReasonRefused,
		"451 Unavailable For Legal Reasons": v1.ReasonRefused,
		"404 Not Found":                     v1.ReasonBadResponse,
		"405 Not Allowed\r\nServer: nginx":  v1.ReasonBadResponse,
		"101 Switching Protocols":           v1.ReasonBadResponse,
		"501 Not Implemented":               v1.ReasonBadResponse,
		"400 Bad Request":                   v1.ReasonInconclusive,
		"502 Bad Gateway":                   v1.ReasonNoEgress,
		"504 Gateway Timeout":               v1.ReasonNoEgress,
		"503 Service Unavailable\r\nX-Squid-Error: ERR_DNS_FAIL 0": v1.ReasonNoEgress,
		"204 No Content":                  v1.ReasonNoEgress, // a tunnel, and then the end
		"99 Low":                          v1.ReasonBadResponse,
		"2000 Long":                       v1.ReasonBadResponse,
		"+20 Signed":                      v1.ReasonBadResponse,
		"200 OK\r\n no name: of a header": v1.ReasonBadResponse,
		strings.Repeat("100 Continue\r\n\r\nHTTP/1.1 ", 20) + "200 Enough": v1.ReasonBadResponse,
	} {
		v := p.Probe(t.Context(), x.Target, serve(t, answers("HTTP/1.1 "+head+"\r\n\r\n")))
		require.Equal(t, reason, v.Reason, "%s: %s", head, v.Text)
	}
}

func TestATargetThatOnlySpeaksTLSIsEnough(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	x.Path = "/elsewhere"
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	v := p.Probe(t.Context(), x.Target, serve(t, tunnelTo(x.address)))
	require.Equal(t, v1.ReasonHealthy, v.Reason, v.Text)
	require.Empty(t, v.EgressIP)
	require.Contains(t, v.Text, "it answered 404")
}

func TestTargetsAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": ":0", "target.example": "target.example:443", "target.example:8443": "target.example:8443",
		"192.0.2.1": "192.0.2.1:443", "[2001:db8::1]:8443": "[2001:db8::1]:8443", "2001:db8::1": "[2001:db8::1]:443",
		"[2001:db8::1]": "[2001:db8::1]:443",
	} {
		got, err := probe.ParseTarget(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.Address(), text)
		require.Equal(t, text == "", got.IsZero())
	}
	for text, want := range map[string]string{
		"https://target.example": "whole number", "a b": "host",
		"target.example:http": `port "http"`, "target.example:0": `port "0"`,
		"target.example:70000": `port "70000"`, "x\r\nHost: y:443": "host", "[fe80::1%eth0]:443": "zone", ":443": "host",
		strings.Repeat("a", 300): "host",
	} {
		_, err := probe.ParseTarget(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestATargetThatWouldEndTheRequestLineIsNotSent(t *testing.T) {
	t.Parallel()
	p := probe.Prober{Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, io.EOF
	}}
	for _, bad := range []probe.Target{
		{Host: "x\r\nA: b", Port: 443},
		{Host: "x", Port: 443, Path: "/ HTTP/1.1\r\nA: b"},
		{Host: "x"},
		{Host: "x", Port: 443, Path: "a"},
	} {
		require.Equal(t, v1.ReasonInconclusive, p.Probe(t.Context(), bad, probe.Proxy{Address: "192.0.2.7:1"}).Reason)
	}
}
