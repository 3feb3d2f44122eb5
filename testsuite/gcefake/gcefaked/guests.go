package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/local"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// portKey is the metadata by which a guest knows the port of its Proxy.
const portKey = providers.MarkPrefix + "port"

// lookEvery is how soon a guest serves once its instance runs, and ends once it does not.
const lookEvery = 100 * time.Millisecond

// address is the external address of the n-th instance. Linux answers on all of
// 127.0.0.0/8; elsewhere only one address exists without an administrator, and ports tell
// the instances apart.
func address(system string, n uint64) string {
	if system != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.32.%d.%d", n/250%250, 1+n%250)
}

// endpoints are where the guests of instances serve: at the external address and the
// port of their metadata, while they run. Addresses beyond loopback are nobody's here.
func endpoints(all []*computepb.Instance) (at []netip.AddrPort) {
	for _, i := range all {
		ip, err := netip.ParseAddr(external(i))
		port, ok := portOf(i)
		if err == nil && ok && ip.IsLoopback() && i.GetStatus() == gcefake.Running {
			at = append(at, netip.AddrPortFrom(ip, port))
		}
	}
	return at
}

func external(i *computepb.Instance) string {
	for _, nic := range i.GetNetworkInterfaces() {
		for _, access := range nic.GetAccessConfigs() {
			if ip := access.GetNatIP(); ip != "" {
				return ip
			}
		}
	}
	return ""
}

func portOf(i *computepb.Instance) (uint16, bool) {
	for _, item := range i.GetMetadata().GetItems() {
		if item.GetKey() == portKey {
			port, err := strconv.ParseUint(item.GetValue(), 10, 16)
			return uint16(port), err == nil && port > 0
		}
	}
	return 0, false
}

// guests are forward proxies of the kind that the provider local has, one for each
// instance that runs.
type guests struct {
	cloud *gcefake.Server
	out   io.Writer
	open  map[netip.AddrPort]context.CancelFunc
	told  map[netip.AddrPort]string // why a guest does not serve
	busy  sync.WaitGroup
}

func newGuests(cloud *gcefake.Server, out io.Writer) *guests {
	cloud.Addresses(func(n uint64) string { return address(runtime.GOOS, n) })
	return &guests{
		cloud: cloud, out: out, open: map[netip.AddrPort]context.CancelFunc{}, told: map[netip.AddrPort]string{},
	}
}

// live lets guests come and go with their instances, until ctx ends and none is left.
func (g *guests) live(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	defer g.busy.Wait()
	for {
		g.look(ctx, endpoints(g.cloud.Instances()))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (g *guests) look(ctx context.Context, want []netip.AddrPort) {
	for at, end := range g.open {
		if !slices.Contains(want, at) {
			end()
			delete(g.open, at)
		}
	}
	for _, at := range want {
		if _, serves := g.open[at]; !serves {
			g.boot(ctx, at)
		}
	}
}

// boot serves at an address. Where it is taken the next look tries again.
func (g *guests) boot(ctx context.Context, at netip.AddrPort) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", at.String())
	if err != nil {
		if g.told[at] != err.Error() {
			g.told[at] = err.Error()
			_, _ = fmt.Fprintln(g.out, "a guest does not serve:", err)
		}
		return
	}
	delete(g.told, at)
	ctx, g.open[at] = context.WithCancel(ctx)
	g.busy.Go(func() { _ = local.Serve(ctx, l, slog.New(slog.DiscardHandler)) })
	_, _ = fmt.Fprintln(g.out, "a guest serves at", at)
}
