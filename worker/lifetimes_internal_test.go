package main

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/workflows/proxy"
)

func TestWhatProxiesTellIsAHistogramByProviderAlone(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	all := newLifetimes(reg, client.MetricsNopHandler, "kvm")
	l := all.WithTags(map[string]string{"workflow_type": "Proxy", "namespace": "default"})
	l.WithTags(map[string]string{proxy.LabelProvider: "gcp"}).Timer(proxy.TimeToGone).Record(90 * time.Second)
	l.Timer("temporal_something").Record(time.Second)
	l.WithTags(map[string]string{proxy.LabelProvider: "gcp"}).Timer(proxy.TimeToGone).Record(2 * time.Hour)

	found, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, found, 2, "nothing of Temporal's own")
	text, err := testutil.CollectAndFormat(all.own[proxy.TimeToGone], expfmt.TypeTextPlain, proxy.TimeToGone)
	require.NoError(t, err)
	for _, want := range []string{
		`egressfleet_proxy_time_to_gone_seconds_bucket{provider="gcp",le="60"} 0`,
		`egressfleet_proxy_time_to_gone_seconds_bucket{provider="gcp",le="120"} 1`,
		`egressfleet_proxy_time_to_gone_seconds_bucket{provider="gcp",le="14400"} 2`,
		`egressfleet_proxy_time_to_gone_seconds_count{provider="gcp"} 2`,
		`egressfleet_proxy_time_to_gone_seconds_count{provider="kvm"} 0`,
	} {
		require.Contains(t, strings.Split(string(text), "\n"), want)
	}
}
