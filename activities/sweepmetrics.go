package activities

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SweepMetrics are the figures of the scheduled sweeps. A nil one counts nothing.
type SweepMetrics struct {
	succeeded *prometheus.GaugeVec
	found     *prometheus.GaugeVec
	deleted   *prometheus.CounterVec
	refused   *prometheus.GaugeVec
	at        *prometheus.GaugeVec
}

// NewSweepMetrics registers them.
func NewSweepMetrics(r prometheus.Registerer) *SweepMetrics {
	m := &SweepMetrics{
		succeeded: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "egressfleet_sweep_last_success_timestamp_seconds",
			Help: "When this worker last carried a sweep of a provider out, in seconds since 1970.",
		}, []string{"sweep", "provider"}),
		found: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "egressfleet_gc_found",
			Help: "What the last sweep of a provider found: listed, living, young, doubts, orphans.",
		}, []string{"provider", "kind"}),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "egressfleet_gc_deleted_total", Help: "Orphans that a backend was asked to delete.",
		}, []string{"provider"}),
		refused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "egressfleet_gc_refused", Help: "1 while the last sweep found more orphans than can be right.",
		}, []string{"provider"}),
	}
	m.at = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "egressfleet_gc_timestamp_seconds",
		Help: "When this worker last looked for orphans of a provider, refused or not, in seconds since 1970.",
	}, []string{"provider"})
	r.MustRegister(m.succeeded, m.found, m.deleted, m.refused, m.at)
	return m
}

// succeed notes when a sweep of a provider ended well.
func (m *SweepMetrics) succeed(sweep, provider string) {
	if m != nil {
		m.succeeded.WithLabelValues(sweep, provider).Set(float64(time.Now().Unix()))
	}
}

// collected notes what a sweep for orphans came to; a plan is none.
func (m *SweepMetrics) collected(r SweepReport) {
	if m == nil {
		return
	}
	for kind, n := range map[string]int{
		"listed": r.Listed, "living": r.Living, "young": r.Young, "doubts": r.Doubts, "orphans": r.Convicts,
	} {
		m.found.WithLabelValues(r.Provider, kind).Set(float64(n))
	}
	m.deleted.WithLabelValues(r.Provider).Add(float64(r.Deleted))
	refused := 0.0
	if r.Refused != "" {
		refused = 1
	}
	m.refused.WithLabelValues(r.Provider).Set(refused)
	m.at.WithLabelValues(r.Provider).Set(float64(time.Now().Unix()))
	if r.Refused == "" {
		m.succeed("orphan-gc", r.Provider)
	}
}
