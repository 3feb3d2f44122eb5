package activities

import "github.com/prometheus/client_golang/prometheus"

// FeedbackMetrics are the figures of what feedback led to. A nil one counts nothing.
type FeedbackMetrics struct{ actions, refusals *prometheus.CounterVec }

// NewFeedbackMetrics registers them.
func NewFeedbackMetrics(r prometheus.Registerer) *FeedbackMetrics {
	m := &FeedbackMetrics{
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "egressfleet_feedback_actions_total", Help: "Holds and replacements that clients' reports led to.",
		}, []string{"provider", "verdict"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "egressfleet_feedback_refusals_total",
			Help: "Holds and replacements that budget or floor forbade.",
		}, []string{"provider", "verdict", "why"}),
	}
	r.MustRegister(m.actions, m.refusals)
	return m
}

func (m *FeedbackMetrics) acted(v FeedbackVerdict) {
	if m != nil {
		m.actions.WithLabelValues(v.Provider, v.Do).Inc()
	}
}

func (m *FeedbackMetrics) refused(v FeedbackVerdict) {
	if m != nil {
		m.refusals.WithLabelValues(v.Provider, v.Do, v.Refused).Inc()
	}
}
