package stage

import (
	"fmt"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// Provider is the provider of every proxy of a stage.
const Provider = "fake"

// Proxies returns so many as their workflows publish them once all is well: with labels,
// a place, conditions with messages, and an address of their own.
func Proxies(n int) []v1.Proxy {
	born := time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)
	all := make([]v1.Proxy, n)
	for i := range all {
		all[i] = proxyOf(i, born.Add(time.Duration(i)*time.Second))
	}
	return all
}

func proxyOf(i int, born time.Time) v1.Proxy {
	uid := fmt.Sprintf("01990000-0000-7000-8000-%012x", i)
	healthy := true
	ip := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	egress := fmt.Sprintf("198.%d.%d.%d", 18+i>>16&1, i>>8&255, i&255)
	region := []string{"europe-west1", "us-central1", "asia-east1"}[i%3]
	const port = 3128
	return v1.Proxy{
		Metadata: v1.Metadata{
			Namespace: "default", Name: fmt.Sprintf("crawler-%05d", i), UID: uid, Generation: 1, CreatedAt: born,
			Labels: map[string]string{"team": "crawlers", "tier": []string{"gold", "silver"}[i%2]},
		},
		Spec: v1.ProxySpec{
			Provider: Provider, Port: port, Placement: v1.Placement{Region: region, Zone: region + "-b"},
		},
		Status: v1.ProxyStatus{
			Phase: v1.PhaseRunning, ProviderID: fake.ID(providers.NameFromUID(uid)), IP: ip, EgressIP: egress,
			Healthy: &healthy, ObservedGeneration: 1, SpecHash: v1.Digest([]byte(uid)), Since: born.Add(time.Minute),
			InstanceCreatedAt: born,
			Conditions: []v1.Condition{
				{
					Type: v1.ConditionProvisioned, Status: v1.ConditionTrue, Reason: "Created",
					Message: "running at " + ip, LastTransitionTime: born.Add(time.Minute),
				},
				{
					Type: v1.ConditionHealthy, Status: v1.ConditionTrue, Reason: v1.ReasonHealthy,
					Message: "TLS verified to the target; it answered 200", LastTransitionTime: born.Add(2 * time.Minute),
				},
			},
		},
	}
}
