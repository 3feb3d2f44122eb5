package activities

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// HealthMetrics are the figures of health rounds. A nil one counts nothing.
type HealthMetrics struct {
	proxies  *prometheus.GaugeVec
	breaker  *prometheus.GaugeVec
	replaced *prometheus.CounterVec
	at       *prometheus.GaugeVec
}

// NewHealthMetrics registers them.
func NewHealthMetrics(r prometheus.Registerer) *HealthMetrics {
	m := &HealthMetrics{
		proxies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "egressfleet_health_proxies",
			Help: "Proxies of a provider by what the last round called them: passed, failed or undecided.",
		}, []string{"provider", "outcome"}),
		breaker: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "egressfleet_health_breaker_open",
			Help: "1 while so many proxies of a provider fail at once that none is replaced.",
		}, []string{"provider"}),
		replaced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "egressfleet_health_replacements_total", Help: "Replacements asked for because of bad health.",
		}, []string{"provider"}),
		at: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "egressfleet_health_timestamp_seconds",
			Help: "When a round last ended for a provider, by this worker's book, in seconds since 1970.",
		}, []string{"provider"}),
	}
	r.MustRegister(m.proxies, m.breaker, m.replaced, m.at)
	return m
}

func (m *HealthMetrics) note(n ProviderHealthNote) {
	if m == nil {
		return
	}
	for outcome, count := range map[string]int{
		"passed": n.Tally.Passed, "failed": n.Tally.Failed, "undecided": n.Tally.Undecided,
	} {
		m.proxies.WithLabelValues(n.Provider, outcome).Set(float64(count))
	}
	open := 0.0
	if n.Breaker {
		open = 1
	}
	m.breaker.WithLabelValues(n.Provider).Set(open)
	m.replaced.WithLabelValues(n.Provider).Add(float64(n.Replaced))
	m.at.WithLabelValues(n.Provider).Set(float64(time.Now().Unix()))
}
