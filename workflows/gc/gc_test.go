package gc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/testsuite/workflowenv"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// run sweeps with hands that answer as a test says, and returns which providers were swept.
func run(
	t *testing.T, in gc.Input, answer func(activities.SweepInput) activities.SweepReport,
) (r gc.Result, swept []activities.SweepInput) {
	t.Helper()
	env := workflowenv.New()
	env.RegisterActivityWithOptions(func(context.Context) ([]string, error) { return []string{"b", "a"}, nil },
		activity.RegisterOptions{Name: "ProviderNames"})
	asked := make(chan activities.SweepInput, 100)
	env.RegisterActivityWithOptions(func(_ context.Context, in activities.SweepInput) (activities.SweepReport, error) {
		asked <- in
		return answer(in), nil
	}, activity.RegisterOptions{Name: "SweepOrphans"})
	env.ExecuteWorkflow(gc.Run, in)
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&r))
	close(asked)
	for in := range asked {
		swept = append(swept, in)
	}
	return r, swept
}

func TestWhatASweepIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   gc.Input
		want []activities.SweepInput
	}{
		"all":              {gc.Input{}, []activities.SweepInput{{Provider: "a"}, {Provider: "b"}}},
		"one":              {gc.Input{Providers: []string{"x"}}, []activities.SweepInput{{Provider: "x"}}},
		"one, named twice": {gc.Input{Providers: []string{"x", "x"}}, []activities.SweepInput{{Provider: "x"}}},
		"everything": {
			gc.Input{Providers: []string{"x"}, Plan: true, Force: true, Unproven: true, Everything: true, MinAge: 1},
			[]activities.SweepInput{{Provider: "x", Plan: true, Force: true, Unproven: true, Everything: true, MinAge: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, swept := run(t, tc.in, func(in activities.SweepInput) activities.SweepReport {
				return activities.SweepReport{Provider: in.Provider}
			})
			require.ElementsMatch(t, tc.want, swept)
			for i, s := range r.Sweeps {
				require.Equal(t, tc.want[i].Provider, s.Provider, "in the order of their names")
			}
		})
	}
}

func TestAResultOfManyProvidersIsBounded(t *testing.T) {
	t.Parallel()
	const many, each = 10, 130 // as much as one report may hold, each
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("p%02d", i))
	}
	r, _ := run(t, gc.Input{Providers: names}, func(in activities.SweepInput) (report activities.SweepReport) {
		report.Provider = in.Provider
		for range each {
			report.Findings = append(report.Findings, activities.Finding{ID: "x", Proof: strings.Repeat("<", 200)})
		}
		return report
	})
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(raw), 256<<10)
	told := 0
	for _, s := range r.Sweeps {
		told += len(s.Findings) + s.Unlisted
	}
	require.Equal(t, many*each, told)
	require.NotEmpty(t, r.Sweeps[0].Findings)
	require.Less(t, len(r.Markdown()), 64<<10)
}
