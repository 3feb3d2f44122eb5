//go:build tools

package stockproxies

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// tinyproxy starts one with rules.
func tinyproxy(t *testing.T, rules string) probe.Proxy {
	t.Helper()
	path, at := binary(t, "tinyproxy"), place(t)
	host, port, err := net.SplitHostPort(at)
	require.NoError(t, err)
	file := write(t, filepath.Join(folder(t), "tinyproxy.conf"), rules+line("\nPort %s\nListen %s", port, host))
	return start(t, at, path, "-d", "-c", file)
}

// stockTinyproxy is Debian's file with another port, and no file of a service.
func stockTinyproxy(t *testing.T) string {
	t.Helper()
	binary(t, "tinyproxy")
	text, err := os.ReadFile("/etc/tinyproxy/tinyproxy.conf")
	require.NoError(t, err)
	moved := regexp.MustCompile(`(?m)^(Port|LogFile|PidFile|User|Group) .*$`).ReplaceAllString(string(text), "")
	require.Contains(t, moved, "\nAllow 127.0.0.1\n", "the stock rules")
	return moved
}

const plainTinyproxy = "Timeout 60\nMaxClients 20\nLogLevel Critical\n"

func TestStockTinyproxy(t *testing.T) {
	t.Parallel()
	proxy := tinyproxy(t, stockTinyproxy(t))
	x := target(t, address(), 8443)
	v := from(client).Probe(t.Context(), x, proxy)
	verdict(t, v1.ReasonHealthy, v)
	require.Equal(t, client, v.EgressIP)

	verdict(t, v1.ReasonRefused, from(stranger).Probe(t.Context(), x, proxy))
	got := from(stranger).OpenProxy(t.Context(), x, proxy)
	require.Equal(t, v1.ConditionFalse, got.Status, got.Text)

	silent := x
	silent.Host = nobody
	v = misled(silent, x.Address()).Probe(t.Context(), silent, proxy)
	require.Contains(t, verdict(t, v1.ReasonNoEgress, v), "500 Unable to connect")
	verdict(t, v1.ReasonInconclusive, from(client).Probe(t.Context(), silent, proxy))
}

func TestTinyproxyWithAListOfPorts(t *testing.T) {
	t.Parallel()
	proxy := tinyproxy(t, plainTinyproxy+"ConnectPort 443\n")
	verdict(t, v1.ReasonRefused, from(client).Probe(t.Context(), target(t, address(), 8443), proxy))
	verdict(t, v1.ReasonHealthy, from(client).Probe(t.Context(), target(t, address(), 443), proxy))
}

func TestTinyproxyThatWantsCredentials(t *testing.T) {
	t.Parallel()
	proxy := tinyproxy(t, plainTinyproxy+"BasicAuth crawler sentinel-password\n")
	x, p := target(t, address(), 443), from(client)
	text := verdict(t, v1.ReasonAuthRequired, p.Probe(t.Context(), x, proxy))
	require.Contains(t, text, "407")
	text = verdict(t, v1.ReasonAuthRequired, p.Probe(t.Context(), x, with(t, proxy, "crawler:sentinel-wrong")))
	require.Contains(t, text, "401", "it says 401 about wrong credentials")
	verdict(t, v1.ReasonHealthy, p.Probe(t.Context(), x, with(t, proxy, "crawler:sentinel-password")))
}

func TestTinyproxyThatLetsEverybodyInIsAnOpenProxy(t *testing.T) {
	t.Parallel()
	x := target(t, address(), 443)
	got := from(stranger).OpenProxy(t.Context(), x, tinyproxy(t, plainTinyproxy))
	require.Equal(t, v1.ConditionTrue, got.Status, got.Text)

	onlyMail := tinyproxy(t, plainTinyproxy+"ConnectPort 25\n")
	got = from(stranger).OpenProxy(t.Context(), x, onlyMail)
	require.Equal(t, v1.ConditionTrue, got.Status, "port 25 was tried: %s", got.Text)
	require.True(t, strings.HasPrefix(got.Text, "denied: "), got.Text)
}
