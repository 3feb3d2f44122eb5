package providercheck

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
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
