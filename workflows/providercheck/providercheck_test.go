package providercheck

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/workflowenv"
)

func TestTransitions(t *testing.T) {
	t.Parallel()
	of := func(targets ...providers.TargetStatus) []activities.ProviderHealth {
		return []activities.ProviderHealth{{Provider: "p", Supported: true, Targets: targets}}
	}
	up := providers.TargetStatus{Target: "a", Ready: true, Reason: providers.ReasonReachable}
	down := providers.TargetStatus{Target: "a", Reason: providers.ReasonTimeout, Message: "after 5 s"}
	refused := providers.TargetStatus{Target: "a", Reason: providers.ReasonForbidden}
	for name, tc := range map[string]struct {
		before, now []activities.ProviderHealth
		want        []Transition
	}{
		"nothing":          {of(up), of(up), nil},
		"down":             {of(up), of(down), []Transition{{"p", "a", "Reachable", "Timeout", "after 5 s"}}},
		"another reason":   {of(down), of(refused), []Transition{{"p", "a", "Timeout", "Forbidden", ""}}},
		"a new one":        {nil, of(up), []Transition{{"p", "a", "", "Reachable", ""}}},
		"one that is gone": {of(up), of(), []Transition{{"p", "a", "Reachable", "", ""}}},
		"a provider gone":  {of(up), nil, []Transition{{"p", "a", "Reachable", "", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, transitions(tc.before, tc.now))
		})
	}
}

// A heartbeat that is missed would take the answers of all providers along with that of
// the one that hangs.
func TestARoundIsBoundedByItselfOnly(t *testing.T) {
	t.Parallel()
	env := workflowenv.New()
	env.RegisterActivityWithOptions(func(context.Context, []string) ([]activities.ProviderHealth, error) {
		return []activities.ProviderHealth{{Provider: "p"}}, nil
	}, activity.RegisterOptions{Name: "CheckProviders"})
	started := make(chan activity.Info, 1)
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		started <- *info
	})
	env.ExecuteWorkflow(Run, Input{})
	require.NoError(t, env.GetWorkflowError())
	info := <-started
	require.Zero(t, info.HeartbeatTimeout)
	require.Greater(t, info.StartToCloseTimeout, 33*time.Second, "a round, and what it waits for one that hangs")
	require.Less(t, info.StartToCloseTimeout, Interval)
}
