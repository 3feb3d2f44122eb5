// Package drift is the workflow that notices drift: one listing for each provider, and
// a hint to every proxy whose instance is not as it should be. The proxy looks for itself
// before it acts. It may import api/v1, activities and the provider contract. Start
// reading at Run.
package drift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// Names on the wire.
const (
	WorkflowType = "DriftSweep"
	// Schedule is the ID of its schedule, and what the IDs of its runs begin with.
	Schedule = "drift-sweep"
)

const (
	// Interval is how often the schedule runs it.
	Interval = 2 * time.Minute
	// Within bounds one run.
	Within = 5 * time.Minute

	attempt = 2 * time.Minute
	total   = 3 * time.Minute
)

// Input says which providers to look at; all that are configured, unless set. A plan
// gives no hint.
type Input struct {
	Providers []string `json:"providers,omitempty"`
	Plan      bool     `json:"plan,omitempty"`
}

// Result is what the listings showed, one for each provider.
type Result struct {
	Sweeps []Sweep `json:"sweeps"`
}

// Sweep is one provider's report, or why there is none.
type Sweep struct {
	activities.DriftReport
	Fault *activities.Fault `json:"fault,omitempty"`
}

var (
	hands *activities.Drift   // nil on purpose: only its method names are used
	names *activities.Orphans // as above
)

// Run looks at every provider at once; one that fails does not stall the others.
func Run(ctx workflow.Context, in Input) (Result, error) {
	ctx = activities.WithBackground(ctx, "compare a listing with the running proxies", attempt, total)
	of := in.Providers
	if len(of) == 0 {
		if err := workflow.ExecuteActivity(ctx, names.ProviderNames).Get(ctx, &of); err != nil {
			return Result{}, err
		}
	}
	of = slices.Compact(slices.Sorted(slices.Values(of))) // named twice is looked at once
	sweeps := make([]workflow.Future, len(of))
	for i, name := range of {
		sweeps[i] = workflow.ExecuteActivity(ctx, hands.SweepDrift, activities.DriftInput{Provider: name, Plan: in.Plan})
	}
	var r Result
	for i, name := range of {
		s := Sweep{DriftReport: activities.DriftReport{Provider: name}}
		if err := sweeps[i].Get(ctx, &s.DriftReport); err != nil {
			fault := activities.FaultOf(err)
			s.Fault = &fault
		}
		r.Sweeps = append(r.Sweeps, s)
	}
	r.cut()
	workflow.SetCurrentDetails(ctx, r.Markdown())
	return r, nil
}

// cut keeps the first hints of all sweeps and counts the others.
func (r *Result) cut() {
	budget := activities.ReportBudget()
	for i := range r.Sweeps {
		s := &r.Sweeps[i]
		kept := activities.Take(&budget, s.Hints)
		s.Unlisted += len(s.Hints) - len(kept)
		s.Hints = kept
	}
}

// shownHints is how many lines the Web UI shows; the result has more.
const shownHints = 20

// Markdown is what a person reads in the Web UI.
func (r Result) Markdown() string {
	var b strings.Builder
	b.WriteString("| provider | running | listed | hints | |\n|---|---|---|---|---|\n")
	for _, s := range r.Sweeps {
		note := ""
		if s.Fault != nil {
			note = "skipped: " + strings.NewReplacer("|", "\\|", "\n", " ").Replace(s.Fault.Text)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s |\n", s.Provider, s.Running, s.Listed, s.Hinted, note)
	}
	left := shownHints
	for _, s := range r.Sweeps {
		shown := s.Hints[:min(left, len(s.Hints))]
		left -= len(shown)
		for _, h := range shown {
			fmt.Fprintf(&b, "\n- %s: `%s` %s", h.Proxy, h.ID, h.Reason)
		}
	}
	return b.String()
}
