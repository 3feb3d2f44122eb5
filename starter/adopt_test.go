package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/adoption"
)

// bereft answers an adoption with one report, and remembers what it was asked for.
type bereft struct {
	fakeFleet
	found adoption.Provider
	asked *adoption.Input
}

func (b bereft) RunSweep(_ context.Context, s fleet.Schedule, in, result any) error {
	if s.Workflow == adoption.WorkflowType {
		*b.asked = in.(adoption.Input)
		result.(*adoption.Result).Providers = []adoption.Provider{b.found}
	}
	return nil
}

func TestAdoptSaysWhatItWouldDoUnlessItIsToldTo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want adoption.Input
	}{
		"nothing is said": {[]string{"adopt"}, adoption.Input{Plan: true}},
		"yes":             {[]string{"adopt", "--yes"}, adoption.Input{}},
		"one provider, and orphans": {
			[]string{"adopt", "--yes", "--provider", "gcp", "--orphans"},
			adoption.Input{Providers: []string{"gcp"}, Orphans: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bereft{asked: &adoption.Input{}, found: adoption.Provider{AdoptReport: activities.AdoptReport{
				Provider: "gcp", Listed: 7, Living: 7,
			}}}
			_, errOut, code := run(t.Context(), &b, "", tc.args...)
			require.Zero(t, code, errOut)
			require.Equal(t, tc.want, *b.asked)
		})
	}
}

func TestAnAdoptionThatIsIncompleteExitsWithAnError(t *testing.T) {
	t.Parallel()
	claim := activities.Claim{ID: "a/b", Owner: "default/x", Why: activities.WhyAdoptable, Adopt: true}
	failed := claim
	failed.Error = "not adopted: connection refused"
	for name, tc := range map[string]struct {
		found adoption.Provider
		says  string // on the standard error; empty: it is complete
	}{
		"all were adopted": {
			adoption.Provider{AdoptReport: activities.AdoptReport{Adopted: 1, Claims: []activities.Claim{claim}}}, "",
		},
		"orphans are not its business": {adoption.Provider{AdoptReport: activities.AdoptReport{Orphans: 3, Leaving: 1}}, ""},
		"it could not be listed": {
			adoption.Provider{Fault: &activities.Fault{Text: "no route"}}, "was skipped: no route",
		},
		"a part could not be listed": {
			adoption.Provider{AdoptReport: activities.AdoptReport{Omitted: []string{"host-b"}}}, "could not list host-b",
		},
		"one was left": {adoption.Provider{AdoptReport: activities.AdoptReport{Left: 2}}, "could not be adopted: 2"},
		"one failed": {
			adoption.Provider{AdoptReport: activities.AdoptReport{Adoptable: 1, Claims: []activities.Claim{failed}}},
			"could not be adopted: 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, code := run(t.Context(), &bereft{asked: &adoption.Input{}, found: tc.found}, "", "adopt", "--yes")
			require.Contains(t, out, "ADOPTABLE")
			if tc.says == "" {
				require.Zero(t, code, errOut)
				return
			}
			require.Equal(t, exitFailure, code)
			require.Contains(t, errOut, "incomplete")
			require.Contains(t, errOut, tc.says)
		})
	}
}
