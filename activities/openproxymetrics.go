package activities

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// OpenProxyMetrics are the figures of the check for open proxies. A nil one counts
// nothing.
type OpenProxyMetrics struct {
	open *prometheus.GaugeVec
	at   prometheus.Gauge
}

// OpenProxyNote is what a check came to.
type OpenProxyNote struct {
	Counts map[string]Openings `json:"counts,omitempty"` // by provider
	// Whole says that a second prober has asked every proxy.
	Whole bool `json:"whole"`
}

// NewOpenProxyMetrics registers them.
func NewOpenProxyMetrics(r prometheus.Registerer) *OpenProxyMetrics {
	m := &OpenProxyMetrics{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "egressfleet_open_proxies",
			Help: "Proxies of a provider that let strangers in, by the last check that this worker noted.",
		}, []string{"provider"}),
		at: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "egressfleet_open_proxy_check_timestamp_seconds",
			Help: "When a check of every proxy last ended, by this worker's book, in seconds since 1970; 0 for never.",
		}),
	}
	r.MustRegister(m.open, m.at)
	return m
}

// note takes nothing back because of a check that did not see every proxy.
func (m *OpenProxyMetrics) note(n OpenProxyNote) {
	if m == nil {
		return
	}
	if n.Whole {
		m.open.Reset()
		m.at.Set(float64(time.Now().Unix()))
	}
	for provider, counts := range n.Counts {
		if n.Whole || counts.Open > 0 {
			m.open.WithLabelValues(provider).Set(float64(counts.Open))
		}
	}
}
