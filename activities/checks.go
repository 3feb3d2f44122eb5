package activities

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
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
}

// ProviderHealth is what the check of one provider found. One without a Checker is not
// supported, which is no failure.
type ProviderHealth struct {
	Provider  string                   `json:"provider"`
	Supported bool                     `json:"supported"`
	Targets   []providers.TargetStatus `json:"targets,omitempty"`
	// Unlisted counts the targets that the bound of an answer leaves out.
	Unlisted int           `json:"unlisted,omitempty"`
	Took     time.Duration `json:"took,omitempty"`
}

// CheckProviders checks so many providers, or all for none, at once and under one
// timeout. The answers are in the order of the names. It never fails: what does not
// answer is a target that is not ready.
func (c *Checks) CheckProviders(ctx context.Context, names []string) ([]ProviderHealth, error) {
	all := len(names) == 0
	if all {
		names = c.Names()
	}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	out := make([]ProviderHealth, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { out[i] = c.check(ctx, name) })
	}
	group.Wait()
	c.Metrics.observe(out, all)
	fit(out)
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
	h.Targets = slices.Clone(h.Targets) // a provider may keep its own
	for i := range h.Targets {
		h.Targets[i].Message = cutTo(h.Targets[i].Message, messageKept)
	}
	return h
}

// checkBytes bounds the answers of a round: the next run of the schedule is given them, too.
const checkBytes = 128 << 10

// fit leaves out of too long answers what is least missed: what ready targets say of
// themselves, then what others say, then targets.
func fit(round []ProviderHealth) {
	for _, spare := range []func(*providers.TargetStatus){
		func(*providers.TargetStatus) {},
		func(t *providers.TargetStatus) {
			if t.Ready {
				t.Message, t.Details = "", nil
			}
		},
		func(t *providers.TargetStatus) { t.Message, t.Details = cutTo(t.Message, proofKept), nil },
	} {
		for _, h := range round {
			for i := range h.Targets {
				spare(&h.Targets[i])
			}
		}
		if raw, err := json.Marshal(round); err == nil && len(raw) <= checkBytes {
			return
		}
	}
	budget := Budget{Lines: checkBytes, Bytes: checkBytes}
	for i := range round {
		h := &round[i]
		kept := Take(&budget, h.Targets)
		h.Targets, h.Unlisted = kept, len(h.Targets)-len(kept)
	}
}

func notReady(target, reason, message string) []providers.TargetStatus {
	return []providers.TargetStatus{{Target: target, Reason: reason, Message: message}}
}

// CheckMetrics are the figures of the checks. A nil one counts nothing.
type CheckMetrics struct {
	mu       sync.Mutex
	shown    map[string]bool
	up, left *prometheus.GaugeVec
	took, at *prometheus.GaugeVec
}

// NewCheckMetrics registers them.
func NewCheckMetrics(r prometheus.Registerer) *CheckMetrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "egressfleet_provider_" + name, Help: help}, labels)
	}
	m := &CheckMetrics{
		shown: map[string]bool{},
		up:    gauge("target_up", "1 while a target of a provider could be used at its last check.", "provider", "target"),
		left: gauge("target_left", "How much is left of a quota of a target, as its provider told at the last check.",
			"provider", "target", "resource"),
		took: gauge("check_duration_seconds", "How long the last check of a provider took.", "provider"),
		at: gauge("check_timestamp_seconds",
			"When this worker last checked a provider, in seconds since 1970.", "provider"),
	}
	r.MustRegister(m.up, m.left, m.took, m.at)
	return m
}

// observe shows the targets of each provider, and those only that it has now. After a
// round of all, providers that are configured no more are not shown either.
func (m *CheckMetrics) observe(round []ProviderHealth, all bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := map[string]bool{}
	for _, h := range round {
		if now[h.Provider] = true; h.Supported {
			m.show(h)
		}
	}
	for provider := range m.shown {
		if all && !now[provider] {
			m.forget(provider)
		}
	}
}

func (m *CheckMetrics) forget(provider string) {
	of := prometheus.Labels{"provider": provider}
	m.up.DeletePartialMatch(of)
	m.left.DeletePartialMatch(of)
	m.took.DeletePartialMatch(of)
	m.at.DeletePartialMatch(of)
	delete(m.shown, provider)
}

func (m *CheckMetrics) show(h ProviderHealth) {
	m.shown[h.Provider] = true
	m.up.DeletePartialMatch(prometheus.Labels{"provider": h.Provider})
	m.left.DeletePartialMatch(prometheus.Labels{"provider": h.Provider})
	for _, target := range h.Targets {
		up := 0.0
		if target.Ready {
			up = 1
		}
		m.up.WithLabelValues(h.Provider, target.Target).Set(up)
		for resource, left := range target.Left {
			m.left.WithLabelValues(h.Provider, target.Target, resource).Set(left)
		}
	}
	m.took.WithLabelValues(h.Provider).Set(h.Took.Seconds())
	m.at.WithLabelValues(h.Provider).Set(float64(time.Now().Unix()))
}
