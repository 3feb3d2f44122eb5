package providertest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func checkRows() []Row {
	return []Row{
		{
			Name: "CheckHasOneEntryPerTarget", Section: "8", Needs: "Checker", run: checkHasOneEntryPerTarget,
			Breaks: "the provider check tells transitions of each target, by its place and name",
		},
		{
			Name: "CheckReturnsWithItsContext", Section: "8", Needs: "Checker", run: checkReturnsWithItsContext,
			Breaks: "all providers are checked under one timeout; one that hangs takes the others along",
		},
		{
			Name: "CheckTellsAnOutage", Section: "8", Needs: "Checker Lab.Break", run: checkTellsAnOutage,
			Breaks: "a backend that is down looks ready, or its targets vanish and nobody is told of any",
		},
		{
			Name: "CheckCalledOffLeavesOthersAlone", Section: "8", Needs: "Checker Lab.Stall", run: checkLeavesOthersAlone,
			Breaks: "each round of checks that times out tears down the connection of a create that is under way",
		},
	}
}

// checks is how often a row repeats a check to see that its order is the same.
const checks = 5

func (s *scene) checker() providers.Checker {
	s.Helper()
	checker, ok := providers.As[providers.Checker](s.p)
	require.True(s, ok, "the suite says that there is a Checker")
	return checker
}

func (s *scene) targets(ctx context.Context) []string {
	s.Helper()
	names := []string{}
	for _, status := range s.checker().Check(ctx) {
		require.NotEmpty(s, status.Target)
		require.NotEmpty(s, status.Reason, "reason of %s", status.Target)
		require.Equal(s, status.Ready, status.Reason == providers.ReasonReachable,
			"%s is ready or not for the reason %s", status.Target, status.Reason)
		require.NotContains(s, names, status.Target, "a target has one entry")
		names = append(names, status.Target)
	}
	require.NotEmpty(s, names, "there is a target")
	return names
}

func checkHasOneEntryPerTarget(s *scene) {
	first := s.targets(s.Context())
	for range checks {
		require.Equal(s, first, s.targets(s.Context()), "the order is always the same")
	}
}

// checkTellsAnOutage has an instance: what was never used may not be missing yet.
func checkTellsAnOutage(s *scene) {
	s.created()
	want := s.targets(s.Context())
	heal := s.suite.Lab.Break(s.host, s.p)
	defer heal()
	got := s.checker().Check(s.Context())
	require.Len(s, got, len(want), "it never fails as a whole")
	for i, status := range got {
		require.Equal(s, want[i], status.Target)
		require.False(s, status.Ready, "%s is ready during an outage", status.Target)
		require.NotEmpty(s, status.Reason, "reason of %s", status.Target)
		require.NotEmpty(s, status.Message, "message of %s", status.Target)
	}
}

func checkLeavesOthersAlone(s *scene) {
	checker := s.checker()
	require.NoError(s, s.beside(func(ctx context.Context, _ string) error { checker.Check(ctx); return nil }))
}

func checkReturnsWithItsContext(s *scene) {
	want := s.targets(s.Context())
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	var got []providers.TargetStatus
	err := s.answer(ended, call{"check", func(ctx context.Context) error {
		got = s.checker().Check(ctx)
		return nil
	}})
	require.NoError(s, err)
	require.Len(s, got, len(want), "it never fails as a whole")
	for i, status := range got {
		require.Equal(s, want[i], status.Target)
	}
}
