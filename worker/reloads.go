package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/egressfleet/egressfleet/providers/registry"
)

// reloadMetrics tell whether the providers file is served as it is.
type reloadMetrics struct {
	failed  prometheus.Gauge
	reloads *prometheus.CounterVec
	success prometheus.Gauge
}

// newReloadMetrics registers the metrics; a process has one set.
func newReloadMetrics(reg prometheus.Registerer) *reloadMetrics {
	m := &reloadMetrics{
		failed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "egressfleet_providers_reload_failed",
			Help: "1 while the providers file, or a credential file that it names, cannot be used and the providers " +
				"before it are served, 0 otherwise.",
		}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "egressfleet_providers_reloads_total",
			Help: "Loads of the providers file by result, ok or failed, the first one included. " +
				"A fault that stays is counted once.",
		}, []string{"result"}),
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "egressfleet_providers_reload_success_timestamp_seconds",
			Help: "When the providers that are served were loaded, in seconds since 1970; 0 for never.",
		}),
	}
	for _, result := range []string{"ok", "failed"} {
		m.reloads.WithLabelValues(result) // a rate needs the 0 before the 1
	}
	reg.MustRegister(m.failed, m.reloads, m.success)
	return m
}

func (m *reloadMetrics) observe(o registry.Outcome) {
	if o.Err != nil {
		m.failed.Set(1)
		m.reloads.WithLabelValues("failed").Inc()
		return
	}
	m.failed.Set(0)
	m.reloads.WithLabelValues("ok").Inc()
	m.success.Set(secondsOf(o.At))
}
