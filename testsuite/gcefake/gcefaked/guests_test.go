package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"testing"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

func machine(status, ip, port string) *computepb.Instance {
	return &computepb.Instance{
		Status: &status,
		NetworkInterfaces: []*computepb.NetworkInterface{{
			AccessConfigs: []*computepb.AccessConfig{{NatIP: &ip}},
		}},
		Metadata: &computepb.Metadata{Items: []*computepb.Items{{Key: proto.String(portKey), Value: &port}}},
	}
}

func TestGuestsServeWhereTheirInstanceRuns(t *testing.T) {
	t.Parallel()
	one := []netip.AddrPort{netip.MustParseAddrPort("127.32.0.1:3128")}
	for what, c := range map[string]struct {
		in   *computepb.Instance
		want []netip.AddrPort
	}{
		"it runs":                     {machine("RUNNING", "127.32.0.1", "3128"), one},
		"it does not run yet":         {machine("STAGING", "127.32.0.1", "3128"), nil},
		"it stops":                    {machine("STOPPING", "127.32.0.1", "3128"), nil},
		"it has no address":           {machine("RUNNING", "", "3128"), nil},
		"its address is not loopback": {machine("RUNNING", "198.18.0.2", "3128"), nil},
		"its port is none":            {machine("RUNNING", "127.32.0.1", "0"), nil},
		"its port is beyond":          {machine("RUNNING", "127.32.0.1", "65536"), nil},
		"it has no port":              {&computepb.Instance{Status: proto.String("RUNNING")}, nil},
	} {
		require.Equal(t, c.want, endpoints([]*computepb.Instance{c.in}), what)
	}
}

func TestAddressesOfGuests(t *testing.T) {
	t.Parallel()
	require.Equal(t, "127.0.0.1", address("darwin", 7), "it has no other")
	seen := map[string]bool{}
	for n := range uint64(62_500) {
		at := address("linux", n)
		require.True(t, netip.MustParseAddr(at).IsLoopback(), at)
		seen[at] = true
	}
	require.Len(t, seen, 62_500, "each its own")
}

// A guest carries a CONNECT while its instance is there, and none after that.
func TestAGuestCarriesTrafficWhileItsInstanceRuns(t *testing.T) {
	t.Parallel()
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "through")
	}))
	defer target.Close()
	port, err := ports.Take()
	require.NoError(t, err)
	cloud := gcefake.New(gcefake.Options{})
	g := newGuests(cloud, io.Discard)
	text := strconv.Itoa(port)
	vm := cloud.Plant(gcefake.Place{Zone: "us-central1-a", Name: "vm"}, &computepb.Instance{
		Metadata: &computepb.Metadata{Items: []*computepb.Items{{Key: proto.String(portKey), Value: &text}}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	g.look(ctx, endpoints(cloud.Instances()))
	at := net.JoinHostPort(external(vm.Message()), text)
	client := target.Client()
	client.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: at})
	client.Transport.(*http.Transport).DisableKeepAlives = true
	get := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target.URL, nil)
		require.NoError(t, err)
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	require.NoError(t, get())
	vm.Vanish()
	g.look(ctx, endpoints(cloud.Instances()))
	g.busy.Wait()
	require.Error(t, get())
	cancel()
}
