// Package gc is the workflow that collects orphans: what no proxy owns any more. It
// sweeps every provider on its own, so that one that hangs or fails does not stall the
// others. It may import api/v1, activities and the provider contract. Start reading at Run.
package gc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// Names on the wire.
const (
	WorkflowType = "OrphanGC"
	// Schedule is the ID of its schedule, and what the IDs of its runs begin with.
	Schedule = "orphan-gc"
	// ErrRefused is the type of the error of a run that would have deleted more than
	// can be right. Its detail is the Result.
	ErrRefused = "TooManyOrphans"
)

const (
	// Interval is how often the schedule runs it.
	Interval = 10 * time.Minute
	// Within bounds one run.
	Within = 20 * time.Minute
)

// Input says which providers to sweep, and how; the zero one is what the schedule asks.
type Input struct {
	Providers []string      `json:"providers,omitempty"` // all that are configured, unless set
	Plan      bool          `json:"plan,omitempty"`
	Force     bool          `json:"force,omitempty"`
	Unproven  bool          `json:"includeUnproven,omitempty"`
	MinAge    time.Duration `json:"minAge,omitempty"`
	// Everything tells also of what is kept without a doubt.
	Everything bool `json:"everything,omitempty"`
}

// Result is what the sweeps saw, kept and deleted, and why; one for each provider, in
// the order of their names.
type Result struct {
	Sweeps []Sweep `json:"sweeps"`
}

// Sweep is one provider's report, or why there is none: nothing was deleted then.
type Sweep struct {
	activities.SweepReport
	Fault *activities.Fault `json:"fault,omitempty"`
}

var orphans *activities.Orphans // nil on purpose: only its method names are used

const (
	// sweepAttempt ends a sweep before the next run is due: a backend that hangs must
	// not hold up the sweeps of the others.
	sweepAttempt = 10 * time.Minute
	sweepTotal   = 15 * time.Minute
	namesTotal   = time.Minute
)

// Run sweeps every provider at once. It fails when a sweep was refused: that is a fault
// somebody has to look at.
func Run(ctx workflow.Context, in Input) (Result, error) {
	names := in.Providers
	if len(names) == 0 {
		if err := workflow.ExecuteActivity(short(ctx), orphans.ProviderNames).Get(ctx, &names); err != nil {
			return Result{}, err
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names))) // named twice is swept once
	sweeps := make([]workflow.Future, len(names))
	for i, name := range names {
		ctx := activities.WithBackground(ctx, "sweep "+name, sweepAttempt, sweepTotal)
		sweeps[i] = workflow.ExecuteActivity(ctx, orphans.SweepOrphans, activities.SweepInput{
			Provider: name, Plan: in.Plan, Force: in.Force, Unproven: in.Unproven, MinAge: in.MinAge,
			Everything: in.Everything,
		})
	}
	var r Result
	for i, name := range names {
		r.Sweeps = append(r.Sweeps, sweepOf(ctx, name, sweeps[i]))
	}
	r.cut()
	workflow.SetCurrentDetails(ctx, r.Markdown())
	return r, r.refused(in.Plan)
}

func sweepOf(ctx workflow.Context, name string, f workflow.Future) Sweep {
	s := Sweep{SweepReport: activities.SweepReport{Provider: name}}
	if err := f.Get(ctx, &s.SweepReport); err != nil {
		fault := activities.FaultOf(err)
		s.Fault = &fault
	}
	return s
}

// cut keeps the first findings of all sweeps and counts the others.
func (r *Result) cut() {
	budget := activities.ReportBudget()
	for i := range r.Sweeps {
		s := &r.Sweeps[i]
		kept := activities.Take(&budget, s.Findings)
		s.Unlisted += len(s.Findings) - len(kept)
		s.Findings = kept
	}
}

// refused is the error of a run in which a sweep was refused; a plan only says so.
func (r *Result) refused(plan bool) error {
	var faults []error
	for _, s := range r.Sweeps {
		if s.Refused != "" {
			faults = append(faults, fmt.Errorf("%s: %s", s.Provider, s.Refused))
		}
	}
	if plan || len(faults) == 0 {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(errors.Join(faults...).Error(), ErrRefused, nil, *r)
}

func short(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: namesTotal, ScheduleToCloseTimeout: namesTotal, Summary: "which providers there are",
	})
}
