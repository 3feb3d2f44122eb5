package drift_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/workflowenv"
	"github.com/egressfleet/egressfleet/workflows/drift"
)

// run sweeps with hands that answer as a test says.
func run(
	t *testing.T, in drift.Input, answer func(activities.DriftInput) (activities.DriftReport, error),
) (r drift.Result) {
	t.Helper()
	env := workflowenv.New()
	env.RegisterActivityWithOptions(func(_ context.Context, in activities.DriftInput) (activities.DriftReport, error) {
		return answer(in)
	}, activity.RegisterOptions{Name: "SweepDrift"})
	env.ExecuteWorkflow(drift.Run, in)
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&r))
	return r
}

func TestAProviderThatFailsDoesNotStallTheOthers(t *testing.T) {
	t.Parallel()
	r := run(t, drift.Input{Providers: []string{"bad", "good"}, Plan: true},
		func(in activities.DriftInput) (activities.DriftReport, error) {
			require.True(t, in.Plan)
			if in.Provider == "bad" {
				return activities.DriftReport{}, activities.ToApplicationError(
					providers.Wrap(providers.ErrPermanent, providers.OpList, "bad", "", errors.New("403")))
			}
			return activities.DriftReport{Provider: in.Provider, Running: 7}, nil
		})
	require.Equal(t, providers.ErrPermanent, r.Sweeps[0].Fault.Class)
	require.Equal(t, 7, r.Sweeps[1].Running)
	require.Contains(t, r.Markdown(), "skipped")
}

func TestAResultOfManyProvidersIsBounded(t *testing.T) {
	t.Parallel()
	const many, each = 10, 130
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("p%02d", i))
	}
	r := run(t, drift.Input{Providers: names}, func(in activities.DriftInput) (report activities.DriftReport, _ error) {
		report.Provider = in.Provider
		for range each {
			report.Hints = append(report.Hints, activities.Hint{ID: "x", Reason: strings.Repeat("<", 200)})
		}
		return report, nil
	})
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(raw), 256<<10)
	told := 0
	for _, s := range r.Sweeps {
		told += len(s.Hints) + s.Unlisted
	}
	require.Equal(t, many*each, told)
	require.Less(t, len(r.Markdown()), 64<<10)
}
