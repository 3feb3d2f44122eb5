// Package feedback is the entity workflow that remembers what clients report of proxies,
// one for each installation: which site bans which egress IP, and what speaks against an
// instance. It has proxies held or replaced, within a budget and above a floor. It may
// import api/v1 and activities. Start reading at Run, then decide.go and its table.
package feedback

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
)

// The one change ID, and its dated versions.
const (
	changeRun     = "run"
	versionFirst  = 1 // 2026-11-30
	versionTidied = 2 // 2026-11-30: what is over is dropped once for all the batches of a task
	versionNewest = versionTidied
)

const (
	// lookEvery is between two looks at the pool, however much is reported.
	lookEvery = 30 * time.Second
	// maxRunAge brings new code in.
	maxRunAge = 24 * time.Hour

	lookWithin = 30 * time.Second
	lookTotal  = 2 * time.Minute
	actWithin  = 2 * time.Minute
	actTotal   = 5 * time.Minute
)

var hands *activities.Feedback // nil on purpose: only its method names are used

// Input is nothing, or the state of the run before. Serialised.
type Input struct {
	State *State `json:"state,omitempty"`
}

type entity struct {
	state   State
	mail    workflow.ReceiveChannel
	version workflow.Version
}

// Run remembers until somebody cancels it.
func Run(ctx workflow.Context, in Input) error {
	version := workflow.GetVersion(ctx, changeRun, versionFirst, versionNewest)
	if err := checkID(workflow.GetInfo(ctx).WorkflowExecution.ID); err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), errInvalid, nil)
	}
	e := &entity{mail: workflow.GetSignalChannel(ctx, SignalReports), version: version}
	if in.State != nil {
		e.state = *in.State
	}
	if err := workflow.SetQueryHandler(ctx, QueryBans, e.bans); err != nil {
		return err
	}
	for {
		if err := e.rest(ctx); err != nil {
			return err
		}
		if outgrown(ctx) { // the mail was taken by the condition that said so
			return workflow.NewContinueAsNewError(ctx, WorkflowType, Input{State: &e.state})
		}
		e.look(ctx)
	}
}

// bans leaves out what its caller has.
func (e *entity) bans(known int64) (Snapshot, error) {
	s := Snapshot{Revision: e.state.Revision, Dropped: e.state.Dropped}
	if known != s.Revision || known == 0 {
		s.Bans = e.state.Bans
	}
	return s, nil
}

// rest waits until there is something to look at, and the last look is not too near.
func (e *entity) rest(ctx workflow.Context) error {
	left := e.state.NextLook.Sub(workflow.Now(ctx))
	if left > 0 {
		ended, err := workflow.AwaitWithTimeout(ctx, left, func() bool { e.take(ctx); return outgrown(ctx) })
		if err != nil || ended {
			return err
		}
	}
	return workflow.Await(ctx, func() bool {
		e.take(ctx)
		return outgrown(ctx) || len(e.state.charges(workflow.Now(ctx))) > 0
	})
}

// take empties the mailbox, without blocking: see workflows/proxy about receivers. After
// an hour without a worker there are thousands of batches, and all of them have to be
// taken within the second that a workflow may think: what each costs by itself is small.
func (e *entity) take(ctx workflow.Context) {
	now, heard := workflow.Now(ctx), false
	for {
		var b Batch
		if !e.mail.ReceiveAsync(&b) {
			break
		}
		if e.version < versionTidied {
			e.state.absorb(now, b)
			continue
		}
		e.state.listen(now, b)
		heard = true
	}
	if heard {
		e.state.tidy(now)
	}
}

func outgrown(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || workflow.Now(ctx).Sub(info.WorkflowStartTime) > maxRunAge
}

// look asks how the pool stands, decides, and acts. What cannot be asked changes nothing:
// the next look comes to it.
func (e *entity) look(ctx workflow.Context) {
	now := workflow.Now(ctx)
	e.state.NextLook = now.Add(lookEvery)
	charges := e.state.charges(now)
	if len(charges) == 0 {
		return
	}
	in := activities.FeedbackLook{Leaving: e.state.leaving(now)}
	for _, s := range charges {
		in.Accused = append(in.Accused, s.Accused)
	}
	var standings activities.FeedbackStandings
	looking := activities.WithBackground(ctx, "how the pool stands", lookWithin, lookTotal)
	if err := workflow.ExecuteActivity(looking, hands.LookAtPool, in).Get(ctx, &standings); err != nil {
		workflow.GetLogger(ctx).Warn("feedback leads to nothing for now", "error", err)
		return
	}
	e.state.Looks++
	verdicts := e.state.judge(workflow.Now(ctx), charges, standings)
	if len(verdicts) == 0 {
		return
	}
	e.act(ctx, verdicts)
}

// act has what was decided done. It is in the state before, so that what becomes of the
// call spends the budget in any case.
func (e *entity) act(ctx workflow.Context, verdicts []activities.FeedbackVerdict) {
	order := activities.FeedbackOrder{
		Verdicts: verdicts,
		Request:  fmt.Sprintf("feedback-%s-%d", workflow.GetInfo(ctx).FirstRunID, e.state.Looks),
	}
	acting := activities.WithBackground(ctx, fmt.Sprintf("%d verdicts", len(verdicts)), actWithin, actTotal)
	var done activities.FeedbackDone
	err := workflow.ExecuteActivity(acting, hands.ActOnFeedback, order).Get(ctx, &done)
	if err != nil && !errors.Is(err, workflow.ErrCanceled) {
		workflow.GetLogger(ctx).Warn("what feedback led to may not be done", "error", err)
	}
	workflow.SetCurrentDetails(ctx, e.markdown(verdicts))
}

// markdown is what a person reads in the Web UI: the last verdicts.
func (e *entity) markdown(verdicts []activities.FeedbackVerdict) string {
	text := fmt.Sprintf("Feedback: bans of %d domains, %d proxies with something against them. Last verdicts:\n",
		len(e.state.Bans), len(e.state.Cases))
	for _, v := range verdicts {
		outcome := v.Reason
		if v.Refused != "" {
			outcome = "not done: " + v.Refused
		}
		text += fmt.Sprintf("\n- %s `%s`: %s", v.Do, v.Key(), outcome)
	}
	return text
}
