package discovery_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/egressfleet/egressfleet/api/discovery"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// many are so many running proxies, with labels and a place.
func many(n int) []v1.Proxy {
	all := make([]v1.Proxy, n)
	for i := range all {
		healthy, region := i%10 != 0, []string{"europe-west1", "us-central1", "asia-east1"}[i%3]
		all[i] = v1.Proxy{
			Metadata: v1.Metadata{
				Namespace: "default", Name: fmt.Sprintf("crawler-%05d", n-i), UID: fmt.Sprintf("0199-%d", i),
				Labels: map[string]string{"team": "crawlers", "tier": []string{"gold", "silver"}[i%2]},
			},
			Spec: v1.ProxySpec{Provider: "gcp", Port: 3128, Placement: v1.Placement{Region: region, Zone: region + "-b"}},
			Status: v1.ProxyStatus{
				Phase: v1.PhaseRunning, IP: fmt.Sprintf("10.0.%d.%d", i>>8&255, i&255), Healthy: &healthy,
				EgressIP: fmt.Sprintf("198.18.%d.%d", i>>8&255, i&255),
			},
		}
	}
	return all
}

func BenchmarkSelectors(b *testing.B) {
	endpoints := discovery.Endpoints(many(10_000))
	for _, text := range []string{"", "team=crawlers", "team in (crawlers,others),tier!=gold", "!old"} {
		selector, err := labels.Parse(text)
		require.NoError(b, err)
		f := discovery.Filter{Labels: selector}
		b.Run(fmt.Sprintf("%q", text), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				discovery.Part(endpoints, f.Keeps)
			}
		})
	}
}

func BenchmarkEndpoints(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		proxies := many(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				discovery.Endpoints(proxies)
			}
		})
	}
}

func BenchmarkRender(b *testing.B) {
	for _, format := range []discovery.Format{discovery.JSON, discovery.Text} {
		for _, n := range []int{100, 1000, 10_000} {
			list := v1.Discovery{GeneratedAt: time.Unix(1_800_000_000, 123456789), Proxies: discovery.Endpoints(many(n))}
			b.Run(fmt.Sprintf("%s/%d", format, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, err := discovery.Render(format, list)
					require.NoError(b, err)
				}
			})
		}
	}
}
