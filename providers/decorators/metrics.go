package decorators

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egressfleet/egressfleet/providers"
)

var (
	_ providers.Provider    = (*measured)(nil)
	_ providers.Unwrapper   = (*measured)(nil)
	_ providers.Inventorier = (*measuredInventory)(nil)
	_ providers.Preparer    = (*measuredPreparer)(nil)
)

// Metrics are the metrics that all providers share.
type Metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

// durationBuckets are seconds: from a call on this machine to a create that blocks
// for the five minutes it may.
func durationBuckets() []float64 {
	return []float64{.005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
}

// NewMetrics registers the metrics with reg, and panics where they are registered
// already: a process has one set.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "egressfleet_provider_requests_total",
			Help: "Calls of a provider by operation and by the class of the error, ok for none.",
		}, []string{"provider", "op", "class"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "egressfleet_provider_request_duration_seconds",
			Help:    "How long a call of a provider took, whatever came of it.",
			Buckets: durationBuckets(),
		}, []string{"provider", "op"}),
	}
	reg.MustRegister(m.requests, m.durations)
	return m
}

type measured struct {
	providers.Provider
	name    string
	metrics *Metrics
}

// measuredInventory is measured over a provider that has an inventory.
type measuredInventory struct {
	*measured
	inner providers.Inventorier
}

// measuredPreparer is measured over a provider that prepares, as a layer of its own.
type measuredPreparer struct {
	providers.Provider
	measured *measured
	inner    providers.Preparer
}

// WithMetrics counts and times each call of a provider. An inventory is a list.
func WithMetrics(p providers.Provider, name string, metrics *Metrics) providers.Provider {
	m := &measured{Provider: p, name: name, metrics: metrics}
	var out providers.Provider = m
	if inner, ok := providers.As[providers.Inventorier](p); ok {
		out = &measuredInventory{measured: m, inner: inner}
	}
	if inner, ok := providers.As[providers.Preparer](p); ok {
		out = &measuredPreparer{Provider: out, measured: m, inner: inner}
	}
	return out
}

// Unwrap returns the measured provider.
func (m *measuredPreparer) Unwrap() providers.Provider { return m.Provider }

// Prepare is the provider's, counted.
func (m *measuredPreparer) Prepare(ctx context.Context, req providers.CreateRequest) (err error) {
	defer m.measured.observe(providers.OpPrepare, time.Now(), &err)
	return m.inner.Prepare(ctx, req)
}

// Unwrap returns the provider without metrics.
func (m *measured) Unwrap() providers.Provider { return m.Provider }

// Create is the provider's, counted.
func (m *measured) Create(ctx context.Context, req providers.CreateRequest) (id string, err error) {
	defer m.observe(providers.OpCreate, time.Now(), &err)
	return m.Provider.Create(ctx, req)
}

// Get is the provider's, counted.
func (m *measured) Get(ctx context.Context, id string) (found *providers.Instance, err error) {
	defer m.observe(providers.OpGet, time.Now(), &err)
	return m.Provider.Get(ctx, id)
}

// Delete is the provider's, counted.
func (m *measured) Delete(ctx context.Context, id string) (err error) {
	defer m.observe(providers.OpDelete, time.Now(), &err)
	return m.Provider.Delete(ctx, id)
}

// ListByTag is the provider's, counted.
func (m *measured) ListByTag(ctx context.Context) (list []providers.Instance, err error) {
	defer m.observe(providers.OpList, time.Now(), &err)
	return m.Provider.ListByTag(ctx)
}

// Inventory is the provider's, counted as a list.
func (m *measuredInventory) Inventory(ctx context.Context) (all providers.Inventory, err error) {
	defer m.observe(providers.OpList, time.Now(), &err)
	return m.inner.Inventory(ctx)
}

// observe takes the error by pointer: it is deferred before there is one.
func (m *measured) observe(op string, began time.Time, err *error) {
	m.metrics.requests.WithLabelValues(m.name, op, result(*err)).Inc()
	m.metrics.durations.WithLabelValues(m.name, op).Observe(time.Since(began).Seconds())
}
