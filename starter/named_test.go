package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// strangers sweeps providers that nobody knows.
type strangers struct{ fakeFleet }

func (s *strangers) RunSweep(_ context.Context, _ fleet.Schedule, _, result any) error {
	fault := &activities.Fault{Reason: v1.ReasonProviderNotConfigured, Text: "no provider of that name is configured"}
	switch r := result.(type) {
	case *gc.Result:
		r.Sweeps = []gc.Sweep{{SweepReport: activities.SweepReport{Provider: "nope"}, Fault: fault}}
	case *drift.Result:
		r.Sweeps = []drift.Sweep{{DriftReport: activities.DriftReport{Provider: "nope"}, Fault: fault}}
	}
	return nil
}

func (s *strangers) List(context.Context, string) ([]v1.Proxy, error) { return nil, nil }

func TestAProviderThatAPersonNamesAndNobodyKnowsIsAnError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"gc", "plan"}, {"gc", "run"}, {"drift", "run"}, {"drain", "--yes", "--timeout", "1h"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, errOut, code := run(t.Context(), &strangers{}, "", append(args, "--provider", "nope")...)
			require.Equal(t, exitFailure, code)
			require.Contains(t, errOut, `--provider: "nope"`)
			require.Less(t, time.Since(began), time.Minute, "it does not wait for what waiting does not mend")
		})
	}
	out, errOut, code := run(t.Context(), &strangers{}, "", "gc", "plan")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "nope was skipped", "of those that nobody named, one may be away")
}
