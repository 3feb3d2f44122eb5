//go:build tools

package page

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// told is a fleet that nobody runs.
type told struct {
	now time.Time

	mu      sync.Mutex
	proxies []v1.Proxy
}

func (f *told) find(namespace, name string) (*v1.Proxy, error) {
	for i := range f.proxies {
		if m := f.proxies[i].Metadata; m.Namespace == namespace && m.Name == name {
			return &f.proxies[i], nil
		}
	}
	return nil, fleet.ErrNotFound
}

func (f *told) change(namespace, name string, change func(*v1.Proxy)) (v1.Proxy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.find(namespace, name)
	if err != nil {
		return v1.Proxy{}, err
	}
	change(p)
	return *p, nil
}

func (f *told) Get(_ context.Context, namespace, name string) (v1.Proxy, error) {
	return f.change(namespace, name, func(*v1.Proxy) {})
}

func (f *told) List(context.Context, string) ([]v1.Proxy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]v1.Proxy{}, f.proxies...), nil
}

// Follow lists them; each list is another one.
func (f *told) Follow(ctx context.Context) (fleet.Living, error) {
	all, err := f.List(ctx, "")
	return fleet.Living{Proxies: all}, err
}

func (f *told) Hold(_ context.Context, namespace, name string, h v1.Hold, _ fleet.Request) (v1.Proxy, error) {
	return f.change(namespace, name, func(p *v1.Proxy) {
		p.Status.Held = true
		p.Status.SetCondition(f.now, v1.Condition{Type: v1.ConditionHeld, Status: v1.ConditionTrue, Reason: h.Reason})
	})
}

func (f *told) Resume(_ context.Context, namespace, name, _ string, _ fleet.Request) (v1.Proxy, error) {
	return f.change(namespace, name, func(p *v1.Proxy) { p.Status.Held = false })
}

func (f *told) Replace(ctx context.Context, namespace, name, _ string, _ fleet.Request) (v1.Proxy, error) {
	return f.Get(ctx, namespace, name)
}

func (f *told) Retry(ctx context.Context, namespace, name, _ string, _ fleet.Request) (v1.Proxy, error) {
	return f.Get(ctx, namespace, name)
}

func (f *told) Delete(_ context.Context, namespace, name, _ string, _ fleet.Request) (v1.Proxy, error) {
	return f.change(namespace, name, func(p *v1.Proxy) { p.Status.Phase = v1.PhaseDeleting })
}

func (f *told) LeaveBehind(ctx context.Context, namespace, name, _ string, _ fleet.Request) (v1.Proxy, error) {
	return f.Get(ctx, namespace, name)
}

func (f *told) Apply(context.Context, v1.Proxy, fleet.Request) (v1.Proxy, bool, error) {
	return v1.Proxy{}, false, fleet.ErrUnavailable
}

func (f *told) Ready(context.Context) error { return nil }

func (f *told) SendFeedback(context.Context, fleet.FeedbackBatch) error { return nil }

func (f *told) Bans(context.Context, int64) (fleet.Bans, error) { return fleet.Bans{}, nil }

func (f *told) LastCollection(context.Context) (v1.Collection, error) {
	return v1.Collection{
		BeganAt: f.now.Add(-4 * time.Minute), EndedAt: f.now.Add(-239 * time.Second), NextAt: f.now.Add(6 * time.Minute),
		Providers: []v1.Collected{
			{Provider: "gcp-eu", Listed: 25, Living: 22, Young: 2, Orphans: 1, Deleted: 1},
			{Provider: "kvm-rack1", Listed: 14, Living: 13, Doubts: 1},
			{Provider: "pods", Listed: 8, Living: 8},
		},
	}, nil
}

func (f *told) LastChecks(context.Context) (time.Time, map[string]v1.ProviderCheck, error) {
	at := f.now.Add(-24 * time.Second)
	check := func(targets ...v1.ProviderTarget) v1.ProviderCheck {
		return v1.ProviderCheck{Supported: true, CheckedAt: at, Targets: targets}
	}
	return at, map[string]v1.ProviderCheck{
		"gcp-eu": check(
			v1.ProviderTarget{Target: "europe-west1-b", Ready: true, Reason: "Ready"},
			v1.ProviderTarget{
				Target: "europe-west4-a", Reason: "QuotaExceeded", Message: "IN_USE_ADDRESSES: 8 of 8 are in use",
			}),
		"kvm-rack1": check(
			v1.ProviderTarget{Target: "host-a", Ready: true, Reason: "Ready", Details: map[string]string{"libvirt": "9.0.0"}},
			v1.ProviderTarget{Target: "host-b", Ready: true, Reason: "Ready", Details: map[string]string{"libvirt": "9.0.0"}}),
		"pods": check(v1.ProviderTarget{Target: "crawl", Ready: true, Reason: "Ready"}),
	}, nil
}

func (f *told) Timeline(_ context.Context, _, name string) ([]v1.Event, error) {
	at := func(d time.Duration) time.Time { return f.now.Add(-d) }
	return []v1.Event{
		{At: at(3 * time.Hour), Phase: v1.PhasePending, Reason: "Applied", Detail: "generation 1"},
		{
			At: at(3*time.Hour - 2*time.Second), Phase: v1.PhasePending, Reason: "QuotaExceeded", Class: "QuotaExceeded",
			Detail: "IN_USE_ADDRESSES: 8 of 8 are in use; next attempt in 5m",
		},
		{At: at(175 * time.Minute), Phase: v1.PhaseProvisioning, Reason: "Created", Detail: "europe-west1-b/" + name},
		{At: at(174 * time.Minute), Phase: v1.PhaseRunning, Reason: "Created", Detail: "it runs at 34.76.10.21"},
		{At: at(173 * time.Minute), Phase: v1.PhaseRunning, Reason: "Healthy", Detail: "CONNECT in 41 ms"},
		{At: at(40 * time.Minute), Phase: v1.PhaseReplacing, Reason: "Replacing", Detail: "asked for: banned"},
		{At: at(38 * time.Minute), Phase: v1.PhaseProvisioning, Reason: "Created", Detail: "europe-west1-b/" + name + "-2"},
		{At: at(37 * time.Minute), Phase: v1.PhaseRunning, Reason: "Created", Detail: "it runs at 34.76.88.4"},
		{At: at(36 * time.Minute), Phase: v1.PhaseRunning, Reason: "Healthy", Detail: "CONNECT in 38 ms"},
	}, nil
}

// newTold is a fleet in which every state occurs.
func newTold(now time.Time, count int) *told {
	f := &told{now: now}
	places := []struct{ provider, region, zone string }{
		{"gcp-eu", "europe-west1", "europe-west1-b"},
		{"kvm-rack1", "rack1", "host-a"},
		{"gcp-eu", "europe-west4", "europe-west4-a"},
		{"pods", "", "crawl"},
		{"gcp-eu", "europe-west1", "europe-west1-c"},
		{"kvm-rack1", "rack1", "host-b"},
	}
	for i := range count {
		place, yes := places[i%len(places)], true
		address := fmt.Sprintf("34.76.%d.%d", 10+i/250, 4+i%250)
		p := v1.Proxy{
			Metadata: v1.Metadata{
				Namespace: []string{"crawl", "crawl", "default", "research"}[i%4], Name: fmt.Sprintf("exit-%03d", i+1),
				Generation: 1, UID: "5f0c7a1e-3f1d-4c0e-9a41-7d1b7e2f0a11", CreatedAt: now.Add(-time.Duration(i+3) * time.Hour),
				Labels: map[string]string{"team": []string{"crawlers", "pricing"}[i%2], "tier": "gold"},
			},
			Spec: v1.ProxySpec{
				Provider: place.provider, Port: 3128, Placement: v1.Placement{Region: place.region, Zone: place.zone},
				HealthCheck: v1.HealthCheck{ReplaceAfter: "10m"},
			},
			Status: v1.ProxyStatus{
				Phase: v1.PhaseRunning, ProviderID: place.zone + "/proxy-" + fmt.Sprint(1000+i), Healthy: &yes,
				ObservedGeneration: 1, IP: address, EgressIP: address,
				Since: now.Add(-time.Duration(37+i*11) * time.Minute), InstanceCreatedAt: now.Add(-38 * time.Minute),
				Conditions: []v1.Condition{
					{
						Type: v1.ConditionProvisioned, Status: v1.ConditionTrue, Reason: v1.ReasonCreated,
						Message: "running with an address", LastTransitionTime: now.Add(-37 * time.Minute),
					},
					{
						Type: v1.ConditionHealthy, Status: v1.ConditionTrue, Reason: v1.ReasonHealthy,
						Message: "CONNECT in 38 ms", LastTransitionTime: now.Add(-36 * time.Minute),
					},
				},
			},
		}
		f.proxies = append(f.proxies, strike(p, i, now))
	}
	return f
}

// strike gives some proxies a trouble.
func strike(p v1.Proxy, i int, now time.Time) v1.Proxy {
	no := false
	unmade := func(phase v1.Phase, reason, message string, next time.Duration) {
		p.Status = v1.ProxyStatus{Phase: phase, Since: now.Add(-time.Duration(i) * 9 * time.Second)}
		p.Status.SetCondition(now, v1.Condition{
			Type: v1.ConditionProvisioned, Status: v1.ConditionFalse, Reason: reason, Message: message,
		})
		if next > 0 {
			p.Status.NextAttemptAt = now.Add(next)
		}
	}
	switch i % 16 {
	case 2:
		unmade(v1.PhasePending, v1.ReasonQuotaExceeded, "IN_USE_ADDRESSES: 8 of 8 are in use", 213*time.Second)
	case 5:
		p.Status.Healthy = &no
		p.Status.SetCondition(now, v1.Condition{
			Type: v1.ConditionHealthy, Status: v1.ConditionFalse, Reason: v1.ReasonNoEgress,
			Message: "503 from the proxy after 2.1 s; the target answers directly",
		})
	case 7:
		unmade(v1.PhaseProvisioning, v1.ReasonProvisioning, "the guest has no address yet", 0)
	case 9:
		p.Status.Held = true
	case 11:
		unmade(v1.PhaseBlocked, v1.ReasonPermanentError, "image debian-11-squid is not there", time.Hour)
	case 14:
		p.Status.Phase, p.Status.Healthy = v1.PhaseReplacing, nil
	}
	return p
}
