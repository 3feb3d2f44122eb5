//go:build tools && linux

package namespaces

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Report 47: scrapoxy/scrapoxy#21. The same proxies serve their client all the time; what
// a stranger meets depends on their rules.
func TestReport47AStrangerInAnotherNamespaceIsKeptOutOrTold(t *testing.T) {
	w := newWorld(t)
	fleet := w.operate(w.serveTarget())
	fleet.up()
	names := []string{"squid", "tinyproxy"}
	serve := func(clients string) (stop func()) {
		var stops []func()
		for _, name := range names {
			stops = append(stops, w.serve(name, clients))
		}
		return func() {
			for _, stop := range stops {
				stop()
			}
		}
	}
	healthy := func() {
		fleet.probe()
		fleet.shows(v1.ConditionHealthy, v1.ConditionTrue, v1.ReasonHealthy)
	}

	stop := serve(clientIP)
	healthy()
	for _, name := range names {
		p, err := fleet.Get(t.Context(), "default", name)
		require.NoError(t, err)
		require.Equal(t, proxyIP, p.Status.EgressIP, "the target saw the proxy, not the client")
	}
	fleet.shows(v1.ConditionOpenProxy, v1.ConditionUnknown, v1.ReasonNoSecondProber)
	require.Empty(t, fleet.check().Open)
	for _, text := range fleet.shows(v1.ConditionOpenProxy, v1.ConditionFalse, v1.ReasonClosed) {
		require.Equal(t, 2, strings.Count(text, "denied: CONNECT "+targetIP), "both were refused by the proxy: %s", text)
	}
	stop()

	stop = serve(everybody)
	open := fleet.check().Open
	slices.Sort(open)
	require.Equal(t, []string{"default/squid", "default/tinyproxy"}, open)
	fleet.shows(v1.ConditionOpenProxy, v1.ConditionTrue, v1.ReasonOpenProxy)
	healthy() // it works for its clients as well
	stop()

	serve(clientIP)
	require.Empty(t, fleet.check().Open)
	fleet.shows(v1.ConditionOpenProxy, v1.ConditionFalse, v1.ReasonClosed)
	healthy()
}

// What never reaches the proxy is kept out, too, where the stranger's own network works.
func TestAStrangerWhomAFirewallKeepsAwayFindsAClosedProxy(t *testing.T) {
	w := newWorld(t)
	target := w.serveTarget()
	w.serve("tinyproxy", everybody)
	ip(t, "-n", string(w.stranger), "route", "add", "unreachable", proxyIP)
	proxy := w.proxy("tinyproxy")
	got := w.stranger.prober().OpenProxy(t.Context(), target, proxy)
	require.Equal(t, v1.ConditionFalse, got.Status, got.Text)
	require.Contains(t, got.Text, "absent: ")

	ip(t, "-n", string(w.stranger), "route", "delete", "default")
	got = w.stranger.prober().OpenProxy(t.Context(), target, proxy)
	require.Equal(t, v1.ConditionUnknown, got.Status, "a stranger without a network proves nothing: %s", got.Text)
}
