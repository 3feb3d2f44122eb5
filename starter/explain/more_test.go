package explain_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/explain"
)

func sorted(reasons map[string]string) []string { return slices.Sorted(maps.Values(reasons)) }

func TestWhatElseIsSaid(t *testing.T) {
	t.Parallel()
	unhealthy := false
	for name, c := range map[string]struct {
		change   func(*v1.Proxy)
		timeline []v1.Event
		want     string
	}{
		"a hold says why": {
			func(p *v1.Proxy) {
				p.Status.Held = true
				p.Status.Conditions = []v1.Condition{{Type: v1.ConditionHeld, Reason: "Billing", Message: "until Monday"}}
			}, nil, "Somebody holds it out of discovery (Billing, until Monday); nothing happens at the backend for that.",
		},
		"a spec that is on its way": {
			func(p *v1.Proxy) { p.Metadata.Generation = 3 }, nil,
			"Generation 3 of its spec is wanted, and generation 1 is what was acted on.",
		},
		"one that is not probed": {
			func(p *v1.Proxy) { p.Spec.HealthCheck.Disabled = true }, nil,
			"It is not probed, since spec.healthCheck.disabled says so.",
		},
		"bad health that replaces, later": {
			func(p *v1.Proxy) { p.Status.Healthy, p.Spec.HealthCheck.ReplaceAfter = &unhealthy, "10m" }, nil,
			"Unless it passes before, it may be replaced in 7 minutes, at 2026-01-31 12:07:00 UTC.",
		},
		"bad health that has replaced already": {
			func(p *v1.Proxy) { p.Status.Healthy, p.Spec.HealthCheck.ReplaceAfter = &unhealthy, "1m" }, nil,
			"It is to be replaced, and waits for its turn",
		},
		"bad health that replaces nothing": {
			func(p *v1.Proxy) { p.Status.Healthy = &unhealthy }, nil, "since spec.healthCheck.replaceAfter is not set",
		},
		"an attempt that is late": {
			func(p *v1.Proxy) { p.Status.NextAttemptAt = noon.Add(-5 * time.Minute) }, nil,
			"The backend is asked again, which has been due since 2026-01-31 11:55:00 UTC. No worker may be running.",
		},
		"an attempt that is under way": {
			func(p *v1.Proxy) { p.Status.NextAttemptAt = noon.Add(-time.Second) }, nil,
			"The backend is asked again, which has been due since 2026-01-31 11:59:59 UTC.",
		},
		"what was asked": {
			func(*v1.Proxy) {},
			[]v1.Event{
				{At: noon.Add(-time.Hour), Reason: "Banned", Detail: "by\x1b[2J\nexample.com"},
				{At: noon.Add(-time.Minute), Reason: "FirstHealthyTimeout"},
				{At: noon, Reason: v1.ReasonCreated},
			},
			"The last message to it is Banned, 60 minutes ago. The reason given is: “by\ufffd[2J example.com”.",
		},
		"trouble of before": {
			func(p *v1.Proxy) {
				p.Status.Conditions = append(p.Status.Conditions, v1.Condition{
					Type: v1.ConditionProvisioned, Status: v1.ConditionTrue, Reason: v1.ReasonCreated,
				})
			},
			[]v1.Event{
				{At: noon.Add(-50 * time.Hour), Reason: v1.ReasonTransientError, Class: "Transient"},
				{At: noon.Add(-49 * time.Hour), Reason: v1.ReasonQuotaExceeded, Class: "QuotaExceeded"},
				{At: noon, Reason: v1.ReasonCreated},
			},
			"Of the 3 steps in its timeline 2 failed, the last one 2 days ago with QuotaExceeded.",
		},
		"a long message": {
			func(p *v1.Proxy) { p.Status.Conditions[0].Message = strings.Repeat("é", 500) }, nil,
			strings.Repeat("é", 400) + "…”",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := of(v1.PhaseRunning, bad(v1.ConditionHealthy, v1.ReasonRefused))
			c.change(&p)
			e := explain.Of(p, c.timeline, noon)
			require.Contains(t, strings.Join(slices.Concat(e.Now, e.Why, e.Next), "\n"), c.want)
		})
	}
}
