//go:build tools

package stockproxies

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// surroundings are what any squid of a test has: nothing on disk, no ICMP, no wait at
// its end, and no name server but a given one.
const surroundings = `
pid_filename none
cache deny all
cache_mem 8 MB
access_log none
netdb_filename none
pinger_enable off
coredump_dir /
shutdown_lifetime 0 seconds
visible_hostname proxy.example
`

// squid starts one with rules.
func squid(t *testing.T, rules string) probe.Proxy {
	t.Helper()
	path, dir, at := binary(t, "squid"), folder(t), place(t)
	conf := rules + surroundings + line("http_port %s", at) + line("cache_log /dev/null")
	if !strings.Contains(rules, "dns_nameservers") {
		conf += line("dns_nameservers %s", servfail(t))
	}
	file := write(t, filepath.Join(dir, "squid.conf"), conf)
	// Instances share memory by the name of their service, of letters and digits.
	service := "probe" + strings.NewReplacer(".", "x", ":", "x").Replace(at)
	return start(t, at, path, "-N", "-d", "1", "-n", service, "-f", file)
}

// stockSquid is Debian's file with another port.
func stockSquid(t *testing.T) string {
	t.Helper()
	binary(t, "squid")
	text, err := os.ReadFile("/etc/squid/squid.conf")
	require.NoError(t, err)
	moved := regexp.MustCompile(`(?m)^(http_port|coredump_dir) .*$`).ReplaceAllString(string(text), "")
	require.Contains(t, moved, "\nhttp_access deny CONNECT !SSL_ports\n", "the stock rules")
	return moved
}

func TestStockSquid(t *testing.T) {
	t.Parallel()
	proxy := squid(t, stockSquid(t))
	good, other := target(t, address(), 443), target(t, address(), 8443)
	v := from(client).Probe(t.Context(), good, proxy)
	verdict(t, v1.ReasonHealthy, v)
	require.Equal(t, client, v.EgressIP)

	text := verdict(t, v1.ReasonRefused, from(client).Probe(t.Context(), other, proxy))
	require.Contains(t, text, "403 Forbidden (ERR_ACCESS_DENIED 0)")

	silent := good
	silent.Host = nobody
	text = verdict(t, v1.ReasonNoEgress, misled(silent, good.Address()).Probe(t.Context(), silent, proxy))
	require.Contains(t, text, "ERR_CONNECT_FAIL 111")
	verdict(t, v1.ReasonInconclusive, from(client).Probe(t.Context(), silent, proxy))

	nowhere := good
	nowhere.Host = "nowhere.example"
	v = misled(nowhere, good.Address()).Probe(t.Context(), nowhere, proxy)
	verdict(t, v1.ReasonNoEgress, v)
	require.Equal(t, probe.CauseTargetDNS, v.Cause, v.Text)
}

func TestSquidThatResolvesToIPv6Only(t *testing.T) {
	t.Parallel()
	hosts := write(t, filepath.Join(folder(t), "hosts"), "::1 target.example\n")
	port := freePort(t) // there is but one ::1, and others may be on its port 443
	proxy := squid(t, stockSquid(t)+line("hosts_file %s", hosts)+line("acl SSL_ports port %d", port))
	literal := target(t, "::1", port)
	v := new(probe.Prober).Probe(t.Context(), literal, proxy)
	verdict(t, v1.ReasonHealthy, v)
	require.Equal(t, "::1", v.EgressIP, v.Text)

	named := literal
	named.Host = "target.example" // which the prober cannot resolve itself
	v = misled(named, literal.Address()).Probe(t.Context(), named, proxy)
	verdict(t, v1.ReasonHealthy, v)
	require.Equal(t, "::1", v.EgressIP, v.Text)
}

func TestSquidThatDeniesEverybody(t *testing.T) {
	t.Parallel()
	proxy := squid(t, "http_access deny all\n")
	verdict(t, v1.ReasonRefused, from(client).Probe(t.Context(), target(t, address(), 443), proxy))
}

func TestSquidThatWantsCredentials(t *testing.T) {
	t.Parallel()
	// openssl passwd -apr1 -salt proxyted sentinel-password
	passwords := write(t, filepath.Join(folder(t), "passwords"), "crawler:$apr1$proxyted$TlBf1SMuVxJ/3Nm.AO5/b0\n")
	proxy := squid(t, line("auth_param basic program /usr/lib/squid/basic_ncsa_auth %s", passwords)+
		"auth_param basic realm proxy\nacl known proxy_auth REQUIRED\nhttp_access allow known\nhttp_access deny all\n")
	x, p := target(t, address(), 443), from(client)
	verdict(t, v1.ReasonAuthRequired, p.Probe(t.Context(), x, proxy))
	verdict(t, v1.ReasonAuthRequired, p.Probe(t.Context(), x, with(t, proxy, "crawler:sentinel-wrong")))
	verdict(t, v1.ReasonHealthy, p.Probe(t.Context(), x, with(t, proxy, "crawler:sentinel-password")))
}

// rules288 are those that keep strangers out; the first one that fits decides.
const rules288 = `
acl SSL_ports port 443
acl Safe_ports port 80 443
acl link_local dst 169.254.0.0/16 fe80::/10
acl clients src 127.0.0.1/32
http_access deny !Safe_ports
http_access deny CONNECT !SSL_ports
http_access deny to_localhost
http_access deny link_local
http_access allow clients
http_access deny all
`

func TestCase288StrangersAreKeptOut(t *testing.T) {
	t.Parallel()
	x := target(t, address(), 443)
	closed := squid(t, rules288)
	got := from(stranger).OpenProxy(t.Context(), x, closed)
	require.Equal(t, v1.ConditionFalse, got.Status, got.Text)
	verdict(t, v1.ReasonRefused, from(client).Probe(t.Context(), x, closed)) // not to the proxy's own machine

	forClients := squid(t, strings.Replace(rules288, "http_access deny to_localhost\n", "", 1))
	verdict(t, v1.ReasonHealthy, from(client).Probe(t.Context(), x, forClients))
	verdict(t, v1.ReasonRefused, from(stranger).Probe(t.Context(), x, forClients))
	got = from(stranger).OpenProxy(t.Context(), x, forClients)
	require.Equal(t, v1.ConditionFalse, got.Status, got.Text)

	open := squid(t, "acl SSL_ports port 443\nhttp_access deny CONNECT !SSL_ports\nhttp_access allow all\n")
	got = from(stranger).OpenProxy(t.Context(), x, open)
	require.Equal(t, v1.ConditionTrue, got.Status, got.Text)

	mail := squid(t, "acl mail port 25\nhttp_access allow mail\nhttp_access deny all\n")
	got = from(stranger).OpenProxy(t.Context(), x, mail)
	require.Equal(t, v1.ConditionTrue, got.Status, "nobody answers on port 25, and it was tried: %s", got.Text)
}
