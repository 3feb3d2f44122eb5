package feedback

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Metrics are the figures of reports, of which no label is a domain. A nil one counts
// nothing.
type Metrics struct {
	registry prometheus.Registerer
	reports  *prometheus.CounterVec
	unheard  prometheus.Counter
	early    prometheus.Gauge
}

// NewMetrics registers them, for one box.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		registry: r,
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "egressfleet_feedback_reports_total", Help: "Reports of clients that were counted, by kind.",
		}, []string{"kind"}),
		unheard: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "egressfleet_feedback_lost_total",
			Help: "Reports that were given up because too many waited while Temporal was away.",
		}),
		early: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "egressfleet_feedback_bans_dropped",
			Help: "Bans that were forgotten early because there are too many.",
		}),
	}
	for _, kind := range v1.ReportKinds() {
		m.reports.WithLabelValues(string(kind))
	}
	r.MustRegister(m.reports, m.unheard, m.early)
	return m
}

// follow adds what a box knows by itself.
func (m *Metrics) follow(b *Box) {
	if m == nil {
		return
	}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "egressfleet_feedback_bans", Help: "Egress IPs that are left out for a domain now, by this process.",
		}, func() float64 { return float64(b.bans.now(b.clock.Now())) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "egressfleet_feedback_waiting", Help: "Reports that are not left with the fleet yet.",
		}, func() float64 { return float64(b.waiting()) }),
	)
}

func (m *Metrics) took(kind v1.ReportKind) {
	if m != nil {
		m.reports.WithLabelValues(string(kind)).Inc()
	}
}

func (m *Metrics) lost() {
	if m != nil {
		m.unheard.Inc()
	}
}

func (m *Metrics) dropped(n int64) {
	if m != nil {
		m.early.Set(float64(n))
	}
}
