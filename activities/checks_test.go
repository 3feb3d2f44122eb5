package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

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
	synctest.Test(t, providersAreChecked)
}

func providersAreChecked(t *testing.T) {
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
		Metrics: activities.NewCheckMetrics(registry),
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
		{"good", fake.Elsewhere, providers.ReasonReachable, true},
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

func TestWhatIsLeftIsAMetricUntilItIsToldNoMore(t *testing.T) {
	t.Parallel()
	left := map[string]float64{"CPUS": 6, "INSTANCES": 0}
	p := checker{fake.New("f"), func(context.Context) []providers.TargetStatus {
		return []providers.TargetStatus{{Target: "z", Ready: true, Reason: providers.ReasonReachable, Left: left}}
	}}
	registry := prometheus.NewRegistry()
	hands := &activities.Checks{
		Lookup:  func(string) (providers.Provider, func(), bool) { return p, func() {}, true },
		Names:   func() []string { return []string{"f"} },
		Metrics: activities.NewCheckMetrics(registry),
	}
	var s sdktest.WorkflowTestSuite
	env := s.NewTestActivityEnvironment()
	env.RegisterActivity(hands)
	for _, want := range []string{
		`egressfleet_provider_target_left{provider="f",resource="CPUS",target="z"} 6` + "\n" +
			`egressfleet_provider_target_left{provider="f",resource="INSTANCES",target="z"} 0` + "\n",
		`egressfleet_provider_target_left{provider="f",resource="CPUS",target="z"} 5` + "\n",
	} {
		_, err := env.ExecuteActivity(hands.CheckProviders, []string(nil))
		require.NoError(t, err)
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(
			"# HELP egressfleet_provider_target_left How much is left of a quota of a target, as its provider told at the "+
				"last check.\n# TYPE egressfleet_provider_target_left gauge\n"+want), "egressfleet_provider_target_left"))
		left = map[string]float64{"CPUS": 5}
	}
}

func TestAnAnswerOfThousandsOfTargetsIsBounded(t *testing.T) {
	t.Parallel()
	inner := fake.New("f")
	long := strings.Repeat("<", 600)
	target := func(i int, ready bool) providers.TargetStatus {
		return providers.TargetStatus{
			Target: fmt.Sprintf("t%05d", i), Ready: ready, Reason: providers.ReasonReachable, Message: long,
			Details: map[string]string{"a": long},
		}
	}
	for name, tc := range map[string]struct {
		targets, broken int
		message         int // bytes that a target that is not ready says
		all             bool
	}{
		"few":           {10, 1, 503, true},
		"many ready":    {1_000, 5, 503, true},
		"many broken":   {300, 90, 203, true},
		"far too many":  {2_000, 2_000, 203, false},
		"ready for all": {3_000, 1, 203, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := checker{inner, func(context.Context) (out []providers.TargetStatus) {
				for i := range tc.targets {
					out = append(out, target(i, i >= tc.broken))
				}
				return out
			}}
			hands := &activities.Checks{
				Lookup: func(string) (providers.Provider, func(), bool) { return p, func() {}, true },
			}
			got, err := hands.CheckProviders(t.Context(), []string{"p"})
			require.NoError(t, err)
			raw, err := json.Marshal(got)
			require.NoError(t, err)
			require.Less(t, len(raw), 160<<10)
			require.Equal(t, tc.targets, len(got[0].Targets)+got[0].Unlisted)
			require.Equal(t, tc.all, got[0].Unlisted == 0)
			require.Len(t, got[0].Targets[0].Message, tc.message)
		})
	}
}

func TestAProviderThatIsConfiguredNoMoreIsNotShown(t *testing.T) {
	t.Parallel()
	inner, names := fake.New("f"), []string{"a", "b"}
	registry := prometheus.NewRegistry()
	hands := &activities.Checks{
		Lookup:  func(string) (providers.Provider, func(), bool) { return inner, func() {}, true },
		Names:   func() []string { return names },
		Metrics: activities.NewCheckMetrics(registry),
	}
	shown := func(only ...string) int {
		_, err := hands.CheckProviders(t.Context(), only)
		require.NoError(t, err)
		n, err := testutil.GatherAndCount(registry)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 8, shown(), "two targets, a duration and a time each")
	names = []string{"a"}
	require.Equal(t, 8, shown("a"), "a check of some says nothing of the others")
	require.Equal(t, 4, shown())
}
