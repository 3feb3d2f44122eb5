//go:build tools && linux

package namespaces

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/activities/probe"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// placed is a backend whose instances are all where the stock proxies listen.
type placed struct{ *fake.Provider }

func (p placed) Get(ctx context.Context, id string) (*providers.Instance, error) {
	inst, err := p.Provider.Get(ctx, id)
	if err == nil {
		inst.IP = proxyIP
	}
	return inst, err
}

// asProbed is the fleet as activities ask for it.
type asProbed struct{ *fleet.Client }

func (f asProbed) Report(ctx context.Context, p v1.Proxy, r activities.HealthReport) error {
	return f.Client.Report(ctx, p, proxy.HealthReport{
		Healthy: r.Healthy, Undecided: r.Undecided, Reason: r.Reason, Message: r.Message, EgressIP: r.EgressIP,
		IP: p.Status.IP,
	})
}

func (f asProbed) ReportOpenProxy(ctx context.Context, p v1.Proxy, o probe.Openness) error {
	return f.Client.ReportOpenProxy(ctx, p, proxy.OpenProxyReport{
		Status: o.Status, Reason: o.Reason, Message: o.Text, IP: p.Status.IP,
	})
}

func (f asProbed) Replace(context.Context, activities.Failing, string, string) (bool, error) {
	return false, nil
}

// operated is a fleet on a real server: a worker whose prober is the client, and a
// second one that is the stranger.
type operated struct {
	*fleet.Client
	t *testing.T
}

func (w *world) operate(target probe.Target) *operated {
	w.t.Helper()
	server, err := devserver.Start(w.t.Context())
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = server.Stop() })
	c, err := client.Dial(client.Options{HostPort: server.Address, Logger: devserver.Quiet()})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	o := &operated{Client: fleet.New(c, "test"), t: w.t}
	asked, backend := asProbed{o.Client}, placed{fake.New("fake")}
	targetOf := func(string) probe.Target { return target }

	main := worker.New(c, proxy.TaskQueue, worker.Options{})
	workflows.Register(main, proxy.DefaultTiming())
	instances := &activities.Instances{
		Lookup:       func(name string) (providers.Provider, func(), bool) { return backend, func() {}, name == "fake" },
		Installation: fake.DefaultInstallation,
	}
	activities.Register(main, instances,
		&activities.Health{Instances: instances, Fleet: asked, Prober: w.client.prober(), TargetOf: targetOf},
		&activities.OpenProxies{Fleet: asked, TargetOf: targetOf, Names: func() []string { return []string{"fake"} }})
	require.NoError(w.t, main.Start())
	w.t.Cleanup(main.Stop)

	outside := worker.New(c, openproxy.QueueOf(proxy.TaskQueue), worker.Options{DisableWorkflowWorker: true})
	outside.RegisterActivity(&activities.Outside{
		Fleet: asked, Prober: w.stranger.prober(),
		Echo: func(t probe.Target) probe.Target { t.Roots = target.Roots; return t },
	})
	require.NoError(w.t, outside.Start())
	w.t.Cleanup(outside.Stop)
	return o
}

// up makes a proxy for each stock one, and waits until Visibility lists them all.
func (o *operated) up() {
	o.t.Helper()
	for name, s := range stock() {
		p := v1.Proxy{
			Metadata: v1.Metadata{Namespace: "default", Name: name}, Spec: v1.ProxySpec{Provider: "fake", Port: s.port},
		}
		_, _, err := o.Apply(o.t.Context(), p, fleet.Request{})
		require.NoError(o.t, err)
	}
	require.Eventually(o.t, func() bool {
		running, err := o.Running(o.t.Context(), "fake")
		return err == nil && len(running) == len(stock())
	}, soon, tick)
}

func (o *operated) probe() (r health.Result) {
	o.t.Helper()
	require.NoError(o.t, o.RunSweep(o.t.Context(), fleet.HealthRound(), health.Input{}, &r))
	require.Empty(o.t, r.Faults)
	return r
}

func (o *operated) check() (r openproxy.Result) {
	o.t.Helper()
	require.NoError(o.t, o.RunSweep(o.t.Context(), fleet.OpenProxyCheck(), openproxy.Input{}, &r))
	require.Empty(o.t, r.Faults)
	require.Equal(o.t, len(stock()), r.Asked)
	return r
}

// shows waits until every proxy shows a condition with a reason.
func (o *operated) shows(kind string, status v1.ConditionStatus, reason string) (texts []string) {
	o.t.Helper()
	for name := range stock() {
		var c v1.Condition
		require.Eventually(o.t, func() bool {
			p, err := o.Get(o.t.Context(), "default", name)
			c, _ = p.Status.Condition(kind)
			return err == nil && c.Status == status && c.Reason == reason
		}, soon, tick, "%s of %s is no %s", kind, name, reason)
		texts = append(texts, c.Message)
	}
	return texts
}
