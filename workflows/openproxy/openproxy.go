// Package openproxy is the workflow that asks, from an address that is no client's,
// whether proxies let strangers in. It may import api/v1, activities and the provider
// contract. Start reading at Run; result.go is what a person reads.
package openproxy

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// Names on the wire.
const (
	WorkflowType = "OpenProxyCheck"
	// Schedule is the ID of its schedule, and what the IDs of its runs begin with. It
	// exists where a second prober has been started.
	Schedule = "open-proxy-check"
	// ErrNoSecondProber is the error type of a run that no second prober took up. Its
	// details are a Result.
	ErrNoSecondProber = "NoSecondProber"

	queueSuffix = "-outside"
)

// QueueOf is the task queue of the second prober beside the one of the workers.
func QueueOf(queue string) string { return queue + queueSuffix }

const (
	// Interval is how often the schedule runs it: an open proxy is found within hours by
	// those who look for one.
	Interval = 10 * time.Minute
	// Within bounds one run.
	Within = 9 * time.Minute

	planWithin  = time.Minute
	batchWithin = time.Minute     // two tunnels of at most 10 s each, and the signals
	batchTotal  = 3 * time.Minute // once it has been taken up, with what is repeated
	// patience is how long a second prober may take to begin: longer than its restart.
	patience = time.Minute
	// atOnce bounds the pages under way, so that none waits for its turn at the second
	// prober and is taken for abandoned.
	atOnce = 4
	// linesKept bounds the lists of a result; the rest is counted.
	linesKept = 200
)

// Input may be empty.
type Input struct {
	// Patience is how long a second prober may take to begin; 0 is a minute.
	Patience time.Duration `json:"patience,omitempty"`
}

var (
	here    *activities.OpenProxies // nil on purpose: only the names of their methods are used
	outside *activities.Outside
)

// Run has every running proxy asked once, some pages at a time. It fails when no second
// prober is there: that is a fault somebody has to look at.
func Run(ctx workflow.Context, in Input) (Result, error) {
	var plan activities.OpenProxyPlan
	planned := activities.WithBackground(ctx, "what there is to ask", planWithin, planWithin)
	if err := workflow.ExecuteActivity(planned, here.PlanOpenProxies).Get(ctx, &plan); err != nil {
		return Result{}, err
	}
	if in.Patience <= 0 {
		in.Patience = patience
	}
	r := Result{Counts: map[string]activities.Openings{}}
	for pages := range slices.Chunk(plan.Pages, atOnce) {
		r.ask(ctx, in, plan.Aims, pages)
	}
	r.cut()
	note(ctx, r)
	workflow.SetCurrentDetails(ctx, r.Markdown())
	if r.NoSecondProber {
		return r, temporal.NewNonRetryableApplicationError(
			"no second prober has taken the check up: start a worker with the role outside, or pause the schedule "+Schedule,
			ErrNoSecondProber, nil, r)
	}
	return r, nil
}

// ask has some pages asked side by side. Once no second prober was there, the rest is
// told so without another wait.
func (r *Result) ask(ctx workflow.Context, in Input, aims map[string]activities.Aim, pages [][]byte) {
	if r.NoSecondProber {
		r.tell(ctx, pages)
		return
	}
	batches := make([]workflow.Future, len(pages))
	for i, begins := range pages {
		batch := activities.WithBackground(ctx, "ask a page as a stranger", batchWithin, in.Patience+batchTotal)
		batch = workflow.WithTaskQueue(batch, QueueOf(workflow.GetInfo(ctx).TaskQueueName))
		batch = workflow.WithScheduleToStartTimeout(batch, in.Patience)
		page := activities.OutsideBatch{Begins: begins, Aims: aims}
		batches[i] = workflow.ExecuteActivity(batch, outside.AskAsStranger, page)
	}
	var abandoned [][]byte
	for i, f := range batches {
		if err := r.take(ctx, f); neverBegan(err) {
			r.NoSecondProber = true
			abandoned = append(abandoned, pages[i])
		} else if err != nil {
			r.Faults = append(r.Faults, activities.FaultOf(err))
		}
	}
	r.tell(ctx, abandoned)
}

// tell has the proxies of some pages told that there is no second prober.
func (r *Result) tell(ctx workflow.Context, pages [][]byte) {
	told := make([]workflow.Future, len(pages))
	for i, begins := range pages {
		telling := activities.WithBackground(ctx, "tell a page that there is no second prober", batchWithin, batchWithin)
		told[i] = workflow.ExecuteActivity(telling, here.TellNoSecondProber, begins)
	}
	for _, f := range told {
		if err := r.take(ctx, f); err != nil {
			r.Faults = append(r.Faults, activities.FaultOf(err))
		}
	}
}

// take adds what one page came to.
func (r *Result) take(ctx workflow.Context, f workflow.Future) error {
	var report activities.OpenProxyReport
	if err := f.Get(ctx, &report); err != nil {
		return err
	}
	r.add(report)
	return nil
}

// neverBegan reports whether nobody took an activity up in time.
func neverBegan(err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && timeout.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_START
}

// note shows the check in the metrics of a worker. That it cannot is no fault of it.
func note(ctx workflow.Context, r Result) {
	noting := activities.WithBackground(ctx, "show the check in the metrics", planWithin, planWithin)
	in := activities.OpenProxyNote{Counts: r.Counts, Whole: !r.NoSecondProber && len(r.Faults) == 0}
	if err := workflow.ExecuteActivity(noting, here.NoteOpenProxies, in).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("the check is not in the metrics", "error", err)
	}
}
