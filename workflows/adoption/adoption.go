// Package adoption is the workflow that brings proxies back whose instances go on while
// their workflows are lost: it starts one for each instance that has none, from its
// marks. It may import api/v1, activities and the provider contract. Start reading at Run.
package adoption

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// Names on the wire.
const (
	WorkflowType = "Adoption"
	// WorkflowID is what the ID of a run begins with; a person runs one at a time.
	WorkflowID = "adoption"
)

// Within bounds one run.
const Within = 40 * time.Minute

const (
	// attempt ends one listing with its starts; what is left is for the next run.
	attempt = 15 * time.Minute
	total   = 16 * time.Minute

	rollAttempt = 3 * time.Minute
	rollTotal   = 5 * time.Minute
)

// Input says whose instances are adopted, and how.
type Input struct {
	Providers []string `json:"providers,omitempty"` // all that are configured, unless set
	Plan      bool     `json:"plan,omitempty"`
	// Orphans also adopts what orphan collection would delete.
	Orphans bool `json:"orphans,omitempty"`
}

// Result is one for each provider, in the order of their names.
type Result struct {
	Providers []Provider `json:"providers"`
}

// Provider is one provider's report, or why there is none: nothing was adopted then.
type Provider struct {
	activities.AdoptReport
	Fault *activities.Fault `json:"fault,omitempty"`
}

var (
	hands *activities.Adoption // nil on purpose: only its method names are used
	names *activities.Orphans  // as above
)

// Run adopts on every provider at once; one that cannot be listed does not stall the
// others. All are listed once before, to see what two of them claim.
func Run(ctx workflow.Context, in Input) (Result, error) {
	of := in.Providers
	if len(of) == 0 {
		ctx := activities.WithBackground(ctx, "which providers there are", time.Minute, time.Minute)
		if err := workflow.ExecuteActivity(ctx, names.ProviderNames).Get(ctx, &of); err != nil {
			return Result{}, err
		}
	}
	of = slices.Compact(slices.Sorted(slices.Values(of))) // named twice is asked once
	r := Result{Providers: make([]Provider, len(of))}
	contested := r.rolls(ctx, of)
	r.adopt(ctx, in, contested)
	r.cut()
	workflow.SetCurrentDetails(ctx, r.Markdown())
	return r, nil
}

// rolls lists every provider, and returns what more than one of them claims.
func (r *Result) rolls(ctx workflow.Context, of []string) (contested []string) {
	asked := make([]workflow.Future, len(of))
	for i, name := range of {
		ctx := activities.WithBackground(ctx, "call the roll of "+name, rollAttempt, rollTotal)
		asked[i] = workflow.ExecuteActivity(ctx, hands.RollCall, name)
	}
	rolls := make([][]string, len(of))
	for i, name := range of {
		r.Providers[i].Provider = name
		r.Providers[i].failed(asked[i].Get(ctx, &rolls[i]))
	}
	return twice(rolls)
}

// twice returns what is in more than one roll, sorted. It is pure.
func twice(rolls [][]string) (contested []string) {
	all := slices.Concat(rolls...)
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			contested = append(contested, all[i])
		}
	}
	return slices.Compact(contested)
}

// adopt goes on with those that could be listed.
func (r *Result) adopt(ctx workflow.Context, in Input, contested []string) {
	asked := make([]workflow.Future, len(r.Providers))
	for i, p := range r.Providers {
		if p.Fault != nil {
			continue
		}
		ctx := activities.WithBackground(ctx, "adopt on "+p.Provider, attempt, total)
		asked[i] = workflow.ExecuteActivity(ctx, hands.AdoptInstances, activities.AdoptInput{
			Provider: p.Provider, Plan: in.Plan, Orphans: in.Orphans, Contested: contested,
		})
	}
	for i, f := range asked {
		if f != nil {
			r.Providers[i].failed(f.Get(ctx, &r.Providers[i].AdoptReport))
		}
	}
}

func (p *Provider) failed(err error) {
	if err == nil {
		return
	}
	fault := activities.FaultOf(err)
	p.Fault = &fault
}

// cut keeps the first claims of all providers and counts the others.
func (r *Result) cut() {
	budget := activities.ReportBudget()
	for i := range r.Providers {
		p := &r.Providers[i]
		kept := activities.Take(&budget, p.Claims)
		p.Unlisted += len(p.Claims) - len(kept)
		p.Claims = kept
	}
}
