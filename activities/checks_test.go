package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// checker is a provider whose check is what a test says; bare is one without a check.
type checker struct {
	providers.Provider
	check func(context.Context) []providers.TargetStatus
}

func (c checker) Check(ctx context.Context) []providers.TargetStatus { return c.check(ctx) }

type bare struct{ providers.Provider }

func TestProvidersAreCheckedAtOnceAndUnderOneTimeout(t *testing.T) {
	t.Parallel()
	ever := make(chan struct{})
	defer close(ever)
	inner := fake.New("f")
	all := map[string]providers.Provider{
		"good": inner,
		"bare": bare{inner},
		"two": checker{inner, func(context.Context) []providers.TargetStatus {
			return []providers.TargetStatus{
				{Target: "b", Reason: providers.ReasonUnauthorized, Message: "401"},
				{Target: "a", Ready: true, Reason: providers.ReasonReachable},
			}
		}},
		"slow": checker{inner, func(ctx context.Context) []providers.TargetStatus {
			<-ctx.Done()
			return []providers.TargetStatus{{Target: "x", Reason: providers.ReasonTimeout}}
		}},
		"deaf":   checker{inner, func(context.Context) []providers.TargetStatus { <-ever; return nil }},
		"broken": checker{inner, func(context.Context) []providers.TargetStatus { panic("nil map") }},
	}
	registry := prometheus.NewRegistry()
	hands := &activities.Checks{
		Lookup:  func(name string) (providers.Provider, func(), bool) { p, ok := all[name]; return p, func() {}, ok },
		Names:   func() []string { return []string{"good", "bare", "two", "slow", "deaf", "broken", "gone"} },
		Metrics: activities.NewCheckMetrics(registry), Within: 10 * time.Millisecond,
	}
	var s sdktest.WorkflowTestSuite
	env := s.NewTestActivityEnvironment()
	env.RegisterActivity(hands)
	v, err := env.ExecuteActivity(hands.CheckProviders, []string(nil))
	require.NoError(t, err)
	var got []activities.ProviderHealth
	require.NoError(t, v.Get(&got))

	type line struct {
		provider, target, reason string
		ready                    bool
	}
	var lines []line
	for _, h := range got {
		require.Equal(t, h.Provider != "bare", h.Supported, h.Provider)
		for _, target := range h.Targets {
			lines = append(lines, line{h.Provider, target.Target, target.Reason, target.Ready})
		}
	}
	require.Equal(t, []line{
		{"good", "mem", providers.ReasonReachable, true},
		{"two", "b", providers.ReasonUnauthorized, false},
		{"two", "a", providers.ReasonReachable, true},
		{"slow", "x", providers.ReasonTimeout, false},
		{"deaf", "deaf", providers.ReasonTimeout, false},
		{"broken", "broken", providers.ReasonTimeout, false},
		{"gone", "gone", providers.ReasonAPIError, false},
	}, lines)
	n, err := testutil.GatherAndCount(registry, "egressfleet_provider_target_up")
	require.NoError(t, err)
	require.Equal(t, len(lines), n)
}
