// Package health is the workflow of one health round: batches of real probes, a verdict
// only for proxies that changed, and replacements within a budget where a spec asks for
// them. It may import api/v1, activities and the provider contract. Start reading at
// Run; decide.go says what is replaced.
package health

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// Names on the wire.
const (
	WorkflowType = "HealthRound"
	// Schedule is the ID of its schedule, and what the IDs of its runs begin with.
	Schedule = "health-round"
)

const (
	// Interval is how often the schedule runs it.
	Interval = time.Minute
	// Within bounds one run.
	Within = 3 * time.Minute

	pagesWithin   = time.Minute
	batchWithin   = 90 * time.Second
	batchTotal    = 2 * time.Minute
	replaceWithin = 30 * time.Second

	// BudgetPerProvider is how many proxies of a provider may be without a running
	// instance for bad health to replace another one.
	BudgetPerProvider = 1

	// candidates is how many failing proxies are passed on: the first may be gone, or
	// not to be asked.
	candidates = 20

	changesKept = 200
)

// Input is empty: every running proxy is probed.
type Input struct{}

// Result is what a round came to.
type Result struct {
	Probed    int                 `json:"probed"`
	Providers []Provider          `json:"providers,omitempty"` // by name
	Reasons   map[string]int      `json:"reasons,omitempty"`
	Changed   []activities.Change `json:"changed,omitempty"`
	Unlisted  int                 `json:"unlisted,omitempty"` // changes that are not listed
	Untold    int                 `json:"untold,omitempty"`   // changes that could not be told
	Faults    []activities.Fault  `json:"faults,omitempty"`   // batches that failed
}

// Provider is the part of a round that is about one provider.
type Provider struct {
	Name    string           `json:"name"`
	Tally   activities.Tally `json:"tally"`
	Breaker bool             `json:"breaker,omitempty"` // open: nothing is replaced
	// Failing are the proxies whose spec asks for another instance by now.
	Failing  int               `json:"failing,omitempty"`
	Replaced []string          `json:"replaced,omitempty"`
	Fault    *activities.Fault `json:"fault,omitempty"`
}

var hands *activities.Health // nil on purpose: only its method names are used

// Run probes every running proxy once, in batches side by side.
func Run(ctx workflow.Context, _ Input) (Result, error) {
	var pages [][]byte
	planned := activities.WithBackground(ctx, "how many batches there are", pagesWithin, pagesWithin)
	if err := workflow.ExecuteActivity(planned, hands.HealthPages).Get(ctx, &pages); err != nil {
		return Result{}, err
	}
	batches := make([]workflow.Future, len(pages))
	for i, begins := range pages {
		batch := activities.WithBackground(ctx, "probe a batch", batchWithin, batchTotal)
		batches[i] = workflow.ExecuteActivity(batch, hands.ProbeBatch, begins)
	}
	var reports []activities.BatchReport
	r := Result{Reasons: map[string]int{}}
	for _, f := range batches {
		var report activities.BatchReport
		if err := f.Get(ctx, &report); err != nil {
			r.Faults = append(r.Faults, activities.FaultOf(err))
			continue
		}
		reports = append(reports, report)
	}
	r.sum(reports)
	for i, p := range r.Providers {
		r.Providers[i] = replace(ctx, p, failingOf(p, reports))
	}
	note(ctx, r.Providers)
	workflow.SetCurrentDetails(ctx, r.Markdown())
	return r, nil
}

// replace asks for the replacements of a provider, if there are any to ask for.
func replace(ctx workflow.Context, p Provider, failing []activities.Failing) Provider {
	p.Failing = len(failing)
	if len(failing) == 0 || p.Breaker {
		return p
	}
	var out activities.Replaced
	in := activities.Replacement{
		Provider: p.Name, Failing: failing[:min(len(failing), candidates)], Budget: BudgetPerProvider,
		Round: workflow.GetInfo(ctx).WorkflowExecution.RunID,
	}
	asking := activities.WithBackground(ctx, "replace what is unhealthy on "+p.Name, replaceWithin, replaceWithin)
	if err := workflow.ExecuteActivity(asking, hands.ReplaceFailing, in).Get(ctx, &out); err != nil {
		fault := activities.FaultOf(err)
		p.Fault = &fault
	}
	p.Replaced = out.Asked
	return p
}

// note shows the round in the metrics of a worker. That it cannot is no fault of the round.
func note(ctx workflow.Context, providers []Provider) {
	notes := make([]activities.ProviderHealthNote, len(providers))
	for i, p := range providers {
		notes[i] = activities.ProviderHealthNote{
			Provider: p.Name, Tally: p.Tally, Breaker: p.Breaker, Replaced: len(p.Replaced),
		}
	}
	noting := activities.WithBackground(ctx, "show the round in the metrics", replaceWithin, replaceWithin)
	if err := workflow.ExecuteActivity(noting, hands.NoteHealth, notes).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("the round is not in the metrics", "error", err)
	}
}

// sum puts the batches together.
func (r *Result) sum(reports []activities.BatchReport) {
	tallies := map[string]activities.Tally{}
	var names []string
	for _, report := range reports {
		r.Probed += report.Probed
		r.Untold += report.Untold
		r.Unlisted += report.Unlisted
		r.Changed = append(r.Changed, report.Changed...)
		for _, reason := range workflow.DeterministicKeys(report.Reasons) {
			r.Reasons[reason] += report.Reasons[reason]
		}
		for _, name := range workflow.DeterministicKeys(report.Tallies) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			tallies[name] = tallies[name].Plus(report.Tallies[name])
		}
	}
	slices.Sort(names)
	for _, name := range names {
		r.Providers = append(r.Providers, Provider{Name: name, Tally: tallies[name], Breaker: tallies[name].BreakerOpen()})
	}
	if more := len(r.Changed) - changesKept; more > 0 {
		r.Changed, r.Unlisted = r.Changed[:changesKept], r.Unlisted+more
	}
}
