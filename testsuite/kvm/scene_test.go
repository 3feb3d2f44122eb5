//go:build integration && linux

package kvm

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/kvmlab"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// reportEnv names the file for the line of figures.
const reportEnv = "KVM_REPORT"

// cloudConfig makes the guest a proxy for the machine that the prober is on.
const cloudConfig = `#cloud-config
write_files:
- path: /etc/tinyproxy/tinyproxy.conf
  content: |
    User tinyproxy
    Group tinyproxy
    Port 8888
    Timeout 60
    MaxClients 20
    Allow ` + kvmlab.Links + `
    ConnectPort 443
runcmd:
- [systemctl, start, tinyproxy]
`

// The real thing: what a person does by HTTP, on a worker as it is shipped, two hosts by
// SSH, a guest that cloud-init configures, and a target that sees the guest.
func TestAProxyOnRealHosts(t *testing.T) {
	w := newWorld(t)
	begun := time.Now()
	status, body := w.call(http.MethodPut, pathOf(proxyName), map[string]any{"spec": v1.ProxySpec{
		Provider: providerName, Port: 8888, CloudInit: v1.CloudInit{Inline: cloudConfig},
		Placement: v1.Placement{Region: "lab", MachineType: debian, Image: debian},
	}})
	require.Equal(t, http.StatusCreated, status, string(body))
	p := w.healthy()
	putToHealthy := time.Since(begun)
	w.traced()
	endpoint := fmt.Sprintf("http://%s:8888", p.Status.IP)
	w.discovered(endpoint)
	require.Equal(t, p.Status.IP, p.Status.EgressIP, "the target sees the guest itself")
	require.Contains(t, w.fetch(endpoint), p.Status.IP)

	replaced := w.partition(p, endpoint)
	status, body = w.call(http.MethodDelete, pathOf(proxyName), nil)
	require.Equal(t, http.StatusAccepted, status, string(body))
	require.Eventually(t, func() bool {
		status, _ := w.call(http.MethodGet, pathOf(proxyName), nil)
		return status == http.StatusNotFound
	}, soon, tick, "%s", w.log)
	domains, volumes := w.left()
	w.report(fmt.Sprintf("kvm: put_to_healthy=%.0fs replaced_during_partition=%d left_domains=%d left_volumes=%d",
		putToHealthy.Seconds(), replaced, len(domains), len(volumes)))
	require.Zero(t, replaced)
	require.Empty(t, domains)
	require.Empty(t, volumes)
}

// traced wants what made the domain to be below the request for it, and its text nowhere.
func (w *world) traced() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return w.jaeger.Of(http.MethodPut, proxyName).Created("kvm.DomainCreate")
	}, soon, tick,
		"the call that starts the domain is below the request:\n%s", w.jaeger.Of(http.MethodPut, proxyName).Tree())
	_, raw := w.jaeger.Traces(nil)
	require.NotContains(w.t, raw, "tinyproxy.conf", "cloud-init is in no span")
}

// partition cuts the host of a proxy off until every sweep has been there and the proxy
// has left discovery, and heals it until the proxy serves again. It returns how many
// domains there were meanwhile that were not there before.
func (w *world) partition(p v1.Proxy, endpoint string) (replaced int) {
	h, _ := w.at(w.t, p.Status.ProviderID)
	before := w.uuids()
	require.Len(w.t, before, 1)
	stop := w.watch(before)

	require.NoError(w.t, h.Cut())
	w.probe()
	require.Eventually(w.t, func() bool { return len(w.endpoints()) == 0 }, soon, tick, "%s", w.log)
	var drifted drift.Result
	require.NoError(w.t, w.fleet.RunSweep(w.t.Context(), fleet.DriftSweep(), drift.Input{}, &drifted))
	var collected gc.Result
	require.NoError(w.t, w.fleet.RunSweep(w.t.Context(), fleet.OrphanGC(), gc.Input{}, &collected))
	require.NotEmpty(w.t, drifted.Sweeps)
	require.NotEmpty(w.t, collected.Sweeps)

	require.NoError(w.t, h.Heal())
	again := w.healthy()
	w.discovered(endpoint)
	require.Contains(w.t, w.fetch(endpoint), p.Status.IP)
	require.Equal(w.t, p.Status.ProviderID, again.Status.ProviderID)
	require.Equal(w.t, p.Status.InstanceCreatedAt, again.Status.InstanceCreatedAt)
	return stop()
}

// watch counts the domains that come until it is stopped, past every provider.
func (w *world) watch(before map[string]bool) (stop func() (others int)) {
	ctx, cancel := context.WithCancel(w.t.Context())
	others := map[string]bool{}
	var done sync.WaitGroup
	done.Go(func() {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for ctx.Err() == nil {
			for id := range w.uuids() {
				others[id] = !before[id]
			}
			select {
			case <-every.C:
			case <-ctx.Done():
			}
		}
	})
	return func() (n int) {
		cancel()
		done.Wait()
		for _, other := range others {
			if other {
				n++
			}
		}
		return n
	}
}

// uuids are the domains of all hosts, running or not.
func (w *world) uuids() map[string]bool {
	all := map[string]bool{}
	for _, h := range w.Hosts {
		out, err := h.Virsh(context.WithoutCancel(w.t.Context()), "list", "--all", "--uuid")
		if err != nil {
			w.t.Errorf("asking %s for its domains: %v", h.Name, err)
		}
		for _, id := range strings.Fields(out) {
			all[id] = true
		}
	}
	return all
}

// left names what is on the hosts besides the images.
func (w *world) left() (domains, volumes []string) {
	for _, h := range w.Hosts {
		found, err := h.Domains(w.t.Context())
		require.NoError(w.t, err)
		domains = append(domains, found...)
		found, err = h.Volumes(w.t.Context())
		require.NoError(w.t, err)
		for _, v := range found {
			if !slices.Contains(w.volumes(), v) {
				volumes = append(volumes, v)
			}
		}
	}
	return domains, volumes
}

func (w *world) report(line string) {
	w.t.Log(line)
	if file := os.Getenv(reportEnv); file != "" {
		require.NoError(w.t, os.WriteFile(file, []byte(line+"\n"), 0o600))
	}
}
