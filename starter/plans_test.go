package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestAHealthPlanSaysWhoIsProbed(t *testing.T) {
	t.Parallel()
	proxy := func(name string, change func(*v1.Proxy)) v1.Proxy {
		p := v1.Proxy{
			Metadata: v1.Metadata{Namespace: "default", Name: name}, Spec: v1.ProxySpec{Provider: "gcp", Port: 3128},
			Status: v1.ProxyStatus{Phase: v1.PhaseRunning, IP: "10.0.0.1"},
		}
		change(&p)
		return p
	}
	f := &fakeFleet{proxies: []v1.Proxy{
		proxy("a", func(*v1.Proxy) {}),
		proxy("b", func(p *v1.Proxy) { p.Spec.HealthCheck.Target = "probe.example:443" }),
		proxy("c", func(p *v1.Proxy) { p.Spec.HealthCheck.Disabled = true }),
		proxy("d", func(p *v1.Proxy) { p.Status.Phase, p.Status.IP = v1.PhaseBlocked, "" }),
	}}
	out, errOut, code := run(t.Context(), f, "", "health", "plan")
	require.Zero(t, code, errOut)
	require.Equal(t, `PROXY      ADDRESS        PROBED  TARGET, OR WHY NOT
default/a  10.0.0.1:3128  yes     the target of provider gcp
default/b  10.0.0.1:3128  yes     probe.example:443
default/c  10.0.0.1:3128  no      spec.healthCheck.disabled
default/d  -              no      is Blocked
`, out)
	out, errOut, code = run(t.Context(), &fakeFleet{}, "", "health", "plan")
	require.Zero(t, code, errOut)
	require.Equal(t, "no proxies\n", out)
}

func TestACheckPlanAsksNobody(t *testing.T) {
	t.Parallel()
	s := &fakeSweeps{result: round()}
	out, errOut, code := run(t.Context(), &fakeFleet{Sweeps: s}, "", "check", "plan")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "host-a")
	require.Contains(t, out, "provider-check: every ")
	require.Empty(t, s.asked)
}
