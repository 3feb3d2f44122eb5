package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
	"github.com/egressfleet/egressfleet/workflows/providercheck"
)

// catchUp is how late a run may still begin after an outage; the server's default is a
// year, and a sweep of yesterday is of no use.
const catchUp = 10 * time.Minute

// overlap lets a run that is late have its time: two sweeps at once find the same.
const overlap = enums.SCHEDULE_OVERLAP_POLICY_SKIP

// jitterPart is the part of an interval that starts are spread over.
const jitterPart = 10

// Schedule is one workflow that runs by itself.
type Schedule struct {
	ID       string // of the schedule; the IDs of its runs begin with it
	Workflow string // type
	Every    time.Duration
	Summary  string
	Within   time.Duration // bounds one run
	// Input is what every run is given; nil is nothing, which asks for all there is. One
	// that is there already keeps its own.
	Input any
}

// ScheduleState is what Temporal says about a schedule.
type ScheduleState struct {
	ID      string        `json:"id"`
	Every   time.Duration `json:"every"`
	Paused  bool          `json:"paused"`
	Note    string        `json:"note,omitempty"`
	LastRun time.Time     `json:"lastRun,omitzero"` // when the last one began
	NextRun time.Time     `json:"nextRun,omitzero"`
	// LastSuccess is when a run last ended well; zero where none is kept.
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	Made        time.Time `json:"-"` // when the schedule was
	Runs        int       `json:"-"` // that it has begun, ever
}

// EnsureSchedules makes the schedules that are not there, and makes those that are as
// they are wanted: the last one to ask wins. One that somebody paused stays paused. An
// error names the command that does it by hand.
func (c *Client) EnsureSchedules(ctx context.Context, wanted ...Schedule) error {
	for _, s := range wanted {
		if verb, err := c.ensureSchedule(ctx, s); err != nil {
			return fmt.Errorf("schedule %s: %w; run: temporal schedule %s", s.ID, translate(err), c.byHand(verb, s))
		}
	}
	return nil
}

// ensureSchedule returns what could not be done: create or update.
func (c *Client) ensureSchedule(ctx context.Context, s Schedule) (verb string, _ error) {
	_, fault := c.temporal.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: s.ID, Spec: s.spec(), Action: c.action(s), Overlap: overlap, CatchupWindow: catchUp,
	})
	if fault == nil {
		return "", nil
	}
	h := c.temporal.ScheduleClient().GetHandle(ctx, s.ID)
	have, err := h.Describe(ctx)
	switch {
	case err != nil && !errors.Is(fault, temporal.ErrScheduleAlreadyRunning):
		return "create", fault
	case err != nil:
		return "update", err
	case c.isWanted(s, have.Schedule):
		return "", nil // also where this worker may not make one
	}
	change := func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		spec, is := s.spec(), in.Description.Schedule
		is.Spec, is.Action = &spec, c.action(s)
		is.Policy = &client.SchedulePolicies{Overlap: overlap, CatchupWindow: catchUp}
		return &client.ScheduleUpdate{Schedule: &is}, nil // its state is as it was: it may be paused
	}
	return "update", h.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: change})
}

// byHand are the arguments of the Temporal CLI that make a schedule as it is wanted.
func (c *Client) byHand(verb string, s Schedule) string {
	return fmt.Sprintf("%s --schedule-id %s --interval %s --jitter %s --overlap-policy Skip --catchup-window %s "+
		"--workflow-id %s --type %s --task-queue %s --execution-timeout %s",
		verb, s.ID, s.Every, s.Every/jitterPart, catchUp, s.ID, s.Workflow, c.taskQueue, s.Within)
}

// isWanted reports whether a schedule needs no change.
func (c *Client) isWanted(s Schedule, is client.Schedule) bool {
	runs, ok := is.Action.(*client.ScheduleWorkflowAction)
	return ok && runs.Workflow == s.Workflow && runs.TaskQueue == c.taskQueue && runs.ID == s.ID &&
		runs.WorkflowExecutionTimeout == s.Within && is.Spec != nil && s.due(is.Spec) &&
		is.Policy != nil && is.Policy.Overlap == overlap && is.Policy.CatchupWindow == catchUp
}

// due reports whether a schedule begins its runs when it is to.
func (s Schedule) due(is *client.ScheduleSpec) bool {
	want := s.spec()
	return slices.Equal(is.Intervals, want.Intervals) && is.Jitter == want.Jitter && len(is.Calendars) == 0
}

func (s Schedule) spec() client.ScheduleSpec {
	return client.ScheduleSpec{
		Intervals: []client.ScheduleIntervalSpec{{Every: s.Every}}, Jitter: s.Every / jitterPart,
	}
}

func (c *Client) action(s Schedule) *client.ScheduleWorkflowAction {
	action := &client.ScheduleWorkflowAction{
		ID: s.ID, Workflow: s.Workflow, TaskQueue: c.taskQueue,
		WorkflowExecutionTimeout: s.Within, StaticSummary: s.Summary,
	}
	if s.Input != nil {
		action.Args = []any{s.Input}
	}
	return action
}

// PauseSchedule stops a schedule until ResumeSchedule. Errors: ErrNoSchedule, ErrUnavailable.
func (c *Client) PauseSchedule(ctx context.Context, schedule, note string) error {
	err := c.temporal.ScheduleClient().GetHandle(ctx, schedule).Pause(ctx, client.SchedulePauseOptions{Note: note})
	return ofSchedule(err)
}

// ResumeSchedule ends PauseSchedule.
func (c *Client) ResumeSchedule(ctx context.Context, schedule, note string) error {
	err := c.temporal.ScheduleClient().GetHandle(ctx, schedule).Unpause(ctx, client.ScheduleUnpauseOptions{Note: note})
	return ofSchedule(err)
}

// ofSchedule is translate for what is asked of a schedule.
func ofSchedule(err error) error {
	if isAny[*serviceerror.NotFound](err) {
		return ErrNoSchedule
	}
	return translate(err)
}

// ScheduleState says what a schedule did last and does next.
func (c *Client) ScheduleState(ctx context.Context, schedule string) (ScheduleState, error) {
	d, err := c.temporal.ScheduleClient().GetHandle(ctx, schedule).Describe(ctx)
	if err != nil {
		return ScheduleState{}, ofSchedule(err)
	}
	state := ScheduleState{
		ID: schedule, Paused: d.Schedule.State.Paused, Note: d.Schedule.State.Note, Made: d.Info.CreatedAt,
		Runs: d.Info.NumActions,
	}
	if len(d.Schedule.Spec.Intervals) > 0 {
		state.Every = d.Schedule.Spec.Intervals[0].Every
	}
	if n := len(d.Info.RecentActions); n > 0 {
		state.LastRun = d.Info.RecentActions[n-1].ActualTime
	}
	if len(d.Info.NextActionTimes) > 0 {
		state.NextRun = d.Info.NextActionTimes[0]
	}
	state.LastSuccess, err = c.lastSuccess(ctx, schedule)
	return state, err
}

// RunSweep starts a sweep by hand and waits for its result. What it came to is decoded
// into result, also where the run failed and its error carries it. Only one at a time is
// run by hand; a run of the schedule may go on beside it, and finds the same. Errors:
// *ConflictError, ErrUnavailable, *temporal.ApplicationError of the run.
func (c *Client) RunSweep(ctx context.Context, s Schedule, input, result any) error {
	run, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: s.ID + "/by-hand", TaskQueue: c.taskQueue, WorkflowExecutionTimeout: s.Within,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL, StaticSummary: s.Summary + ", by hand",
		// Otherwise the result of the other one, which may be a plan, were taken for this one's.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, s.Workflow, input)
	if isAny[*serviceerror.WorkflowExecutionAlreadyStarted](err) {
		return &ConflictError{Field: "sweep", Value: s.ID, Problem: "is being run by hand already; wait for its end"}
	}
	if err != nil {
		return translate(err)
	}
	err = run.Get(ctx, result)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.HasDetails() {
		return errors.Join(app, app.Details(result))
	}
	return translate(err)
}

// lastSuccess is when a run that a schedule began last completed; zero where none is
// kept. A run by hand, which may only have planned, does not count.
func (c *Client) lastSuccess(ctx context.Context, schedule string) (time.Time, error) {
	info, err := c.lastRun(ctx, schedule, endedWell)
	if info == nil {
		return time.Time{}, err
	}
	return info.GetCloseTime().AsTime(), nil
}

// How a run ended, as Visibility writes it.
const (
	endedWell  = "Completed"
	endedBadly = "Failed"
)

// lastRun is the last run that a schedule began and that ended so; nil where none is kept.
func (c *Client) lastRun(ctx context.Context, schedule, ended string) (*workflow.WorkflowExecutionInfo, error) {
	page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowId STARTS_WITH '%s-' AND ExecutionStatus = '%s'", schedule, ended), PageSize: 1,
	})
	if err != nil || len(page.GetExecutions()) == 0 {
		return nil, translate(err)
	}
	return page.GetExecutions()[0], nil
}

// OrphanGC is the schedule that collects orphans.
func OrphanGC() Schedule {
	return Schedule{
		ID: gc.Schedule, Workflow: gc.WorkflowType, Every: gc.Interval, Within: gc.Within,
		Summary: "collect what no proxy owns any more",
	}
}

// DriftSweep is the schedule that notices drift.
func DriftSweep() Schedule {
	return Schedule{
		ID: drift.Schedule, Workflow: drift.WorkflowType, Every: drift.Interval, Within: drift.Within,
		Summary: "compare what providers list with what their proxies show",
	}
}

// ProviderCheck is the schedule that checks the providers.
func ProviderCheck() Schedule {
	return Schedule{
		ID: providercheck.Schedule, Workflow: providercheck.WorkflowType, Every: providercheck.Interval,
		Within: providercheck.Within, Summary: "ask every provider whether its backend could be used",
	}
}

// LastResult decodes what the last run that a schedule began, and that ended well, came
// to, and says when that was. Errors: ErrNoRun, ErrUnavailable.
func (c *Client) LastResult(ctx context.Context, schedule string, result any) (time.Time, error) {
	info, err := c.lastRun(ctx, schedule, endedWell)
	if err != nil {
		return time.Time{}, err
	}
	if info == nil {
		return time.Time{}, fmt.Errorf("schedule %s: %w", schedule, ErrNoRun)
	}
	run := c.temporal.GetWorkflow(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId())
	return info.GetCloseTime().AsTime(), translate(run.Get(ctx, result))
}

// firstRunWithin is how long the first run may take before it counts as none.
const firstRunWithin = time.Minute

// firstRun says of a schedule without a run that ended well whether there can be one. It
// is none, unless that is known.
func firstRun(s ScheduleState, now time.Time, none error) error {
	at := s.LastRun
	if at.IsZero() {
		at = s.NextRun
	}
	if s.Paused || s.Runs > 1 || !now.Before(at.Add(firstRunWithin)) || s.LastRun.IsZero() && now.After(at) {
		return none
	}
	return &FirstRunError{Schedule: s.ID, At: at}
}

// HealthRound is the schedule that probes every running proxy.
func HealthRound() Schedule {
	return Schedule{
		ID: health.Schedule, Workflow: health.WorkflowType, Every: health.Interval, Within: health.Within,
		Summary: "probe every running proxy",
	}
}

// LastChecks returns what the last round of checks found, by the provider's name, and
// when that was. Errors: *FirstRunError, ErrNoRun, ErrNoSchedule, ErrUnavailable.
func (c *Client) LastChecks(ctx context.Context) (time.Time, map[string]v1.ProviderCheck, error) {
	var round providercheck.Result
	_, err := c.LastResult(ctx, providercheck.Schedule, &round)
	if errors.Is(err, ErrNoRun) {
		var state ScheduleState
		none := err
		if state, err = c.ScheduleState(ctx, providercheck.Schedule); err == nil {
			err = firstRun(state, time.Now(), none)
		}
	}
	if err != nil {
		return time.Time{}, nil, err
	}
	found := map[string]v1.ProviderCheck{}
	for _, h := range round.Providers {
		check := v1.ProviderCheck{Supported: h.Supported, CheckedAt: round.At, Unlisted: h.Unlisted}
		for _, t := range h.Targets {
			check.Targets = append(check.Targets, v1.ProviderTarget{
				Target: t.Target, Ready: t.Ready, Reason: t.Reason, Message: t.Message, Details: t.Details,
			})
		}
		found[h.Provider] = check
	}
	return round.At, found, nil
}

// OpenProxyCheck is the schedule that asks every running proxy as a stranger. The second
// prober ensures it.
func OpenProxyCheck() Schedule {
	return Schedule{
		ID: openproxy.Schedule, Workflow: openproxy.WorkflowType, Every: openproxy.Interval, Within: openproxy.Within,
		Summary: "ask every running proxy as a stranger",
	}
}
