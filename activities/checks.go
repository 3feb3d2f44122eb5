package activities

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egressfleet/egressfleet/providers"
)

// checkWithin bounds one round of checks, for all providers together.
const checkWithin = 30 * time.Second

// messageKept bounds what a target says about itself, in bytes.
const messageKept = 500

// Checks asks providers whether their backends could be used right now.
type Checks struct {
	// Lookup returns a configured provider, in its decorators; Names all of them.
	Lookup func(name string) (p providers.Provider, release func(), ok bool)
	Names  func() []string
	// Metrics may be nil.
	Metrics *CheckMetrics
	// Within bounds a round; checkWithin unless set.
	Within time.Duration
}

// ProviderHealth is what the check of one provider found. One without a Checker is not
// supported, which is no failure.
type ProviderHealth struct {
	Provider  string                   `json:"provider"`
	Supported bool                     `json:"supported"`
	Targets   []providers.TargetStatus `json:"targets,omitempty"`
	Took      time.Duration            `json:"took,omitempty"`
}

// CheckProviders checks so many providers, or all for none, at once and under one
// timeout. The answers are in the order of the names. It never fails: what does not
// answer is a target that is not ready.
func (c *Checks) CheckProviders(ctx context.Context, names []string) ([]ProviderHealth, error) {
	if len(names) == 0 {
		names = c.Names()
	}
	within := c.Within
	if within == 0 {
		within = checkWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	out := make([]ProviderHealth, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { out[i] = c.check(ctx, name) })
	}
	group.Wait()
	for _, h := range out {
		c.Metrics.observe(h)
	}
	return out, nil
}

func (c *Checks) check(ctx context.Context, name string) ProviderHealth {
	h := ProviderHealth{Provider: name}
	p, release, ok := c.Lookup(name)
	if !ok {
		h.Supported, h.Targets = true, notReady(name, providers.ReasonAPIError, errNotConfigured.Error())
		return h
	}
	checker, ok := providers.As[providers.Checker](p)
	if !ok {
		release()
		return h
	}
	began := time.Now()
	ctx = providers.WithLogger(ctx, providers.Logger(ctx).With(slog.String("provider", name)))
	r := outlive(ctx, name, func(ctx context.Context) ([]providers.TargetStatus, error) {
		defer release()
		return checker.Check(ctx), nil
	})
	h.Supported, h.Targets, h.Took = true, r.out, time.Since(began)
	if r.err != nil {
		h.Targets = notReady(name, providers.ReasonTimeout, r.err.Error())
	}
	for i := range h.Targets {
		h.Targets[i].Message = cutTo(h.Targets[i].Message, messageKept)
	}
	return h
}

func notReady(target, reason, message string) []providers.TargetStatus {
	return []providers.TargetStatus{{Target: target, Reason: reason, Message: message}}
}

// CheckMetrics are the figures of the checks. A nil one counts nothing.
type CheckMetrics struct {
	mu       sync.Mutex
	up       *prometheus.GaugeVec
	took, at *prometheus.GaugeVec
}

// NewCheckMetrics registers them.
func NewCheckMetrics(r prometheus.Registerer) *CheckMetrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "egressfleet_provider_" + name, Help: help}, labels)
	}
	m := &CheckMetrics{
		up:   gauge("target_up", "1 while a target of a provider could be used at its last check.", "provider", "target"),
		took: gauge("check_duration_seconds", "How long the last check of a provider took.", "provider"),
		at: gauge("check_timestamp_seconds",
			"When this worker last checked a provider, in seconds since 1970.", "provider"),
	}
	r.MustRegister(m.up, m.took, m.at)
	return m
}

// observe shows the targets of a provider, and those only that it has now.
func (m *CheckMetrics) observe(h ProviderHealth) {
	if m == nil || !h.Supported {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.up.DeletePartialMatch(prometheus.Labels{"provider": h.Provider})
	for _, target := range h.Targets {
		up := 0.0
		if target.Ready {
			up = 1
		}
		m.up.WithLabelValues(h.Provider, target.Target).Set(up)
	}
	m.took.WithLabelValues(h.Provider).Set(h.Took.Seconds())
	m.at.WithLabelValues(h.Provider).Set(float64(time.Now().Unix()))
}
