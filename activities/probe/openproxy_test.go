package probe_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	opened  = "HTTP/1.1 200 OK\r\n\r\n"
	denied  = "HTTP/1.1 403 Forbidden\r\n\r\n"
	unwell  = "HTTP/1.1 503 Service Unavailable\r\n\r\n"
	tried   = "HTTP/1.1 503 Service Unavailable\r\nX-Squid-Error: ERR_CONNECT_FAIL 111\r\n\r\n"
	gateway = "HTTP/1.1 502 Bad Gateway\r\n\r\n"
)

// Report 47: scrapoxy/scrapoxy#21. Proxies that let everybody in were used to send spam.
func TestReport47AnOpenProxyIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		web, smtp string // answers to a stranger's CONNECT; "": closes
		direct    bool   // the target can be reached directly
		status    v1.ConditionStatus
		reason    string
	}{
		"both are refused":                        {denied, denied, true, v1.ConditionFalse, v1.ReasonClosed},
		"one is refused, one wants credentials":   {needsAuth, denied, true, v1.ConditionFalse, v1.ReasonClosed},
		"the web is open":                         {opened, denied, true, v1.ConditionTrue, v1.ReasonOpenProxy},
		"mail is open":                            {denied, opened, true, v1.ConditionTrue, v1.ReasonOpenProxy},
		"mail was tried":                          {denied, tried, true, v1.ConditionTrue, v1.ReasonOpenProxy},
		"mail was tried by a gateway":             {denied, gateway, true, v1.ConditionTrue, v1.ReasonOpenProxy},
		"a proxy that is unwell proves nothing":   {denied, unwell, true, v1.ConditionUnknown, v1.ReasonInconclusive},
		"a stranger is cut off":                   {"", "", true, v1.ConditionFalse, v1.ReasonClosed},
		"a prober without a network is cut off":   {"", "", false, v1.ConditionUnknown, v1.ReasonInconclusive},
		"what is refused is so without a network": {denied, denied, false, v1.ConditionFalse, v1.ReasonClosed},
		"nonsense proves nothing":                 {"SSH-2.0\r\n", denied, true, v1.ConditionUnknown, v1.ReasonInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTarget(t)
			proxy := serve(t, func(conn net.Conn) {
				text := c.web
				if strings.HasPrefix(readRequest(conn), "CONNECT target.example:25 ") {
					text = c.smtp
				}
				_, _ = io.WriteString(conn, text)
			})
			p := probe.Prober{Limits: generous(), Dial: x.dialer("")}
			if c.direct {
				p.Dial = x.dialer(x.address)
			}
			got := p.OpenProxy(t.Context(), x.Target, proxy)
			require.Equal(t, c.status, got.Status, got.Text)
			require.Equal(t, c.reason, got.Reason, got.Text)
			require.Contains(t, got.Text, "target.example:443")
			require.Contains(t, got.Text, "target.example:25")
		})
	}
}

func TestManyAreAskedAtOnceAndTheirTargetOnce(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	answering := func(text string) probe.Job {
		return probe.Job{Target: x.Target, Proxy: serve(t, func(conn net.Conn) {
			readRequest(conn)
			_, _ = io.WriteString(conn, text)
		})}
	}
	cut, untargeted := answering(""), answering(opened)
	untargeted.Target = probe.Target{}
	jobs := []probe.Job{answering(opened), cut, untargeted, answering(denied), cut}
	var direct atomic.Int32
	reach := x.dialer(x.address)
	p := probe.Prober{Limits: generous(), Concurrency: 2, Dial: func(
		ctx context.Context, network, address string,
	) (net.Conn, error) {
		if address == x.Address() {
			direct.Add(1)
		}
		return reach(ctx, network, address)
	}}
	var reasons []string
	for _, o := range p.OpenProxies(t.Context(), jobs) {
		reasons = append(reasons, o.Reason)
	}
	require.Equal(t, []string{
		v1.ReasonOpenProxy, v1.ReasonClosed, v1.ReasonNoTarget, v1.ReasonClosed, v1.ReasonClosed,
	}, reasons)
	require.EqualValues(t, 1, direct.Load())

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, o := range p.OpenProxies(ended, []probe.Job{answering(opened)}) {
		require.Equal(t, v1.ConditionUnknown, o.Status, o.Text)
	}
}

func TestWithoutASecondProberNothingIsKnown(t *testing.T) {
	t.Parallel()
	got := probe.NoSecondProber()
	require.Equal(t, v1.ConditionUnknown, got.Status)
	require.Equal(t, v1.ReasonNoSecondProber, got.Reason)
	got = new(probe.Prober).OpenProxy(t.Context(), probe.Target{}, probe.Proxy{})
	require.Equal(t, v1.ConditionUnknown, got.Status)
	require.Equal(t, v1.ReasonNoTarget, got.Reason)
}
