package probe_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/echo"
)

// Report 30: scrapoxy/scrapoxy#170. A probe that asks for a page of its own calls
// every proxy dead that is not its own.
func TestReport30AProxyThatKnowsNothingOfUsIsHealthy(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	proxy := serve(t, func(conn net.Conn) { // what anybody writes in an afternoon
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil || r.Method != http.MethodConnect || r.Host != x.Address() {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.0 200 Connection established\r\nProxy-agent: afternoon\r\n\r\n")
		splice(conn, x.address)
	})
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	v := p.Probe(t.Context(), x.Target, proxy)
	require.Equal(t, v1.ReasonHealthy, v.Reason, v.Text)
	require.Equal(t, "127.0.0.1", v.EgressIP)
	require.Contains(t, v.Text, "200 Connection established")
	require.Contains(t, v.Text, "TLS verified to target.example:443")
	require.Positive(t, v.Took)
}

const needsAuth = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n"

// guarded is a proxy that wants user "crawler" and password "sentinel-password".
func guarded(far string) func(net.Conn) {
	return func(conn net.Conn) {
		// printf crawler:sentinel-password | base64
		if !strings.Contains(readRequest(conn), "\r\nProxy-Authorization: Basic Y3Jhd2xlcjpzZW50aW5lbC1wYXNzd29yZA==\r\n") {
			_, _ = io.WriteString(conn, needsAuth)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		splice(conn, far)
	}
}

func credentials(t *testing.T, text string) probe.Credentials {
	t.Helper()
	c, err := probe.ParseCredentials(text)
	require.NoError(t, err)
	return c
}

// Report 31: alpkeskin/rota#28. A checker without credentials calls 115 of 115 proxies
// dead.
func TestReport31CredentialsAreSentAndTheirLackIsNamed(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	proxy := serve(t, guarded(x.address))
	p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
	for name, c := range map[string]struct{ credentials, reason string }{
		"none":  {"", v1.ReasonAuthRequired},
		"wrong": {"crawler:other", v1.ReasonAuthRequired},
		"right": {"crawler:sentinel-password\n", v1.ReasonHealthy},
	} {
		with := proxy
		if c.credentials != "" {
			with.Credentials = credentials(t, c.credentials)
		}
		v := p.Probe(t.Context(), x.Target, with)
		require.Equal(t, c.reason, v.Reason, "%s: %s", name, v.Text)
	}
}

// Report 32: alpkeskin/rota#46. A probe that does not verify TLS passes whoever reads
// along.
func TestReport32AProxyThatEndsTLSIsNotHealthy(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	for name, hosts := range map[string][]string{
		"for the target's name": {"target.example"}, "for another name": {"interceptor.example"},
	} {
		stranger, err := echo.New(hosts...)
		require.NoError(t, err)
		proxy := serve(t, tunnelTo(serveEcho(t, stranger).address))
		p := probe.Prober{Limits: generous(), Dial: x.dialer(x.address)}
		v := p.Probe(t.Context(), x.Target, proxy)
		require.Equal(t, v1.ReasonTLSIntercepted, v.Reason, name)
		require.Empty(t, v.EgressIP, name)
		require.Contains(t, v.Text, "the certificate is ", name)
		require.NotContains(t, v.Text, "interceptor", "a stranger's words stay out")
	}
}

// Report 35: claffin/cloudproxy#62. A firewall keeps the prober out, and nobody is told
// why the proxy is never listed.
func TestReport35AFirewallIsNamed(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	limits := generous()
	limits.Dial = 20 * time.Millisecond
	p := probe.Prober{Limits: limits, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "192.0.2.7:3128" { // drops every packet
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Net: network, Err: context.DeadlineExceeded}
		}
		return new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, x.address)
	}}
	v := p.Probe(t.Context(), x.Target, probe.Proxy{Address: "192.0.2.7:3128"})
	require.Equal(t, v1.ReasonUnreachable, v.Reason)
	require.Contains(t, v.Text, "TCP to 192.0.2.7:3128: no answer within the time")
	require.Contains(t, v.Text, "port not reachable from prober")
}

// Report 37: luminati-io/luminati-proxy#168. The target is down, and every proxy is
// thrown away.
func TestReport37ATargetThatIsDownBlamesNobody(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	proxies := []probe.Proxy{
		serve(t, answers("HTTP/1.1 503 Service Unavailable\r\n\r\n")), // cannot connect
		serve(t, answers("HTTP/1.1 200 OK\r\n\r\n")),                  // connected, and cut off
		serve(t, hang), // still connecting when the probe's time is over
	}
	p := probe.Prober{Limits: impatient(), Dial: x.dialer("")}
	for _, proxy := range proxies {
		v := p.Probe(t.Context(), x.Target, proxy)
		require.Equal(t, v1.ReasonInconclusive, v.Reason, v.Text)
		require.Contains(t, v.Text, "the target cannot be reached directly either")
		require.False(t, v.Failed())
	}
	refusing := serve(t, answers("HTTP/1.1 403 Forbidden\r\n\r\n"))
	p.Limits = generous()
	v := p.Probe(t.Context(), x.Target, refusing)
	require.Equal(t, v1.ReasonRefused, v.Reason, "what a proxy says about itself is not excused by a target")
}
