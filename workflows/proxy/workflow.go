// Package proxy is the entity workflow that owns one Proxy for its whole life: it
// makes the instance, watches it, replaces it, and closes once nothing is left. It
// may import api/v1, activities and the provider contract. Start reading at
// Workflow.Run, then decide.go and its table.
package proxy

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Workflow is the workflow type Proxy; workflows.Register gives it its name.
type Workflow struct{ Timing Timing }

// entity is one Proxy while a run holds it in memory. Only state survives.
type entity struct {
	uid, namespace, name string
	timing               *Timing          // of the worker, and never changed
	version              workflow.Version // of this run
	state                State
	mail                 mailbox
	seen                 *observation // what the last wait saw, if it ended by seeing
	woken                bool         // a message wants a round
	dirty                bool         // a message changed what is published
	looked               bool         // the last round only looked: what is known is fresh
	renew                bool         // a message wants a new run
	changed              time.Time    // when this run published last
}

// Run owns one Proxy from its start until nothing is left of it. It fails at once on
// input that cannot be right, and never on a provider's error. What it waits with stays on
// the stack for as long as the proxy is kept, so nothing large is passed by value.
func (w *Workflow) Run(ctx workflow.Context, in *Input) (Result, error) {
	version := pinVersion(ctx)
	e, err := newEntity(ctx, &w.Timing, in)
	if err != nil {
		return Result{}, temporal.NewNonRetryableApplicationError(err.Error(), ErrInvalidInput, nil)
	}
	e.version = version
	if err := e.register(ctx); err != nil {
		return Result{}, err
	}
	// A cancel request means delete, so work goes on in a context it does not reach.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	err = e.live(ctx)
	return e.result(), err
}

// newEntity takes over the state of the run before, or begins with the spec.
func newEntity(ctx workflow.Context, t *Timing, in *Input) (*entity, error) {
	if in == nil {
		in = &Input{} // nothing was given, or null
	}
	info := workflow.GetInfo(ctx)
	namespace, name, err := NamesOf(info.WorkflowExecution.ID)
	if err == nil {
		err = in.validate()
	}
	if err != nil {
		return nil, err
	}
	e := &entity{
		// The SDK's test environment has no first run ID.
		uid:       cmp.Or(in.UID, info.FirstRunID, info.WorkflowExecution.RunID),
		namespace: namespace, name: name, timing: t, mail: newMailbox(ctx),
	}
	if in.State != nil {
		e.state = *in.State
		return e, nil
	}
	e.state = State{
		Spec: in.Spec, Labels: in.Labels, Generation: 1,
		CreatedAt: info.WorkflowStartTime, BornOf: in.RequestID,
	}
	e.state.Status.Phase, e.state.Status.Since = v1.PhasePending, info.WorkflowStartTime
	e.state.Wanted = info.WorkflowStartTime
	switch {
	case in.Adopt != nil:
		e.state.adopt(*in.Adopt, info.WorkflowStartTime)
		e.state.Wanted = time.Time{} // it has run before
		e.note(ctx, v1.ReasonFromMarks, "", "instance "+in.Adopt.ID+" and its UID are kept")
	case in.UID != "": // it exists: what is not looked for would be left
		e.state.Creating, e.state.Attempt, e.state.Began = true, 1, info.WorkflowStartTime
		e.state.MadeFrom, e.state.Wanted = specHash(in.Spec, e.state.userData()), time.Time{}
	}
	return e, nil
}

// live runs rounds until one of them is the last of the run.
func (e *entity) live(ctx workflow.Context) error {
	e.publish(ctx) // the UID is visible before the first provider call
	for {
		next, resumed := e.resume()
		if !resumed {
			next = e.round(ctx).Next
		}
		if next.kind == kindDone {
			e.depart(ctx)
			e.drain(ctx)
			return nil
		}
		e.wait(ctx, next)
		if e.outgrown(ctx) {
			e.drain(ctx)
			return workflow.NewContinueAsNewError(ctx, WorkflowType, e.carry())
		}
	}
}

// resume returns the timer that the run before did not wait for to its end, if any.
func (e *entity) resume() (next wait, ok bool) {
	if e.state.Wait == nil {
		return wait{}, false
	}
	return after(e.state.Wait.Pace), true
}

// round observes, decides and executes once. It has no error result on purpose: a
// failure is one more thing to decide about.
func (e *entity) round(ctx workflow.Context) plan {
	e.woken = false
	o := e.observe(ctx)
	e.state = e.state.learn(o)
	// A run of before measures from the create also once its instance has run.
	e.state.Ran = e.state.Ran && e.version >= versionDeadlines
	p, generation := decide(e.state, o), e.state.Generation
	e.looked = p.Do == actionNone
	if f := e.execute(ctx, p); f != nil {
		o = observation{Failure: f, At: workflow.Now(ctx)}
		p = decide(e.state, o)
	}
	if p.Do == actionCreate && e.state.Lacking != "" {
		p.Next = prepare()
	}
	e.state.Status.ObservedGeneration = generation
	e.record(ctx, p, o)
	return p
}

// wait blocks until the watch or the timer of the plan is ready, or a message wants
// a round, which cancels it.
func (e *entity) wait(outer workflow.Context, w wait) {
	ctx, cancel := workflow.WithCancel(outer)
	defer cancel()
	watching, let := e.watching(ctx, outer, w)
	defer let()
	f := e.start(watching, w)
	ended := func() bool { return e.woken || f.IsReady() || e.outgrown(ctx) }
	hold, late := clock{summary: "the hold ends by itself"}, clock{summary: "a deadline passes"}
	watched := e.watchedDeadline(ctx, w)
	for !ended() {
		hold.set(ctx, e.state.HoldUntil)
		late.set(ctx, e.unwatched(ctx, watched))
		_ = workflow.Await(ctx, func() bool {
			e.takeMail()
			return e.dirty || hold.rang() || late.rang() || ended()
		})
		e.heed(ctx, hold, late)
		if e.dirty {
			e.publish(ctx)
		}
	}
	if e.woken || f.IsReady() {
		e.state.Wait = nil
	}
	e.seen = e.saw(ctx, w, f)
}

// watching returns where a wait has its watch, and what ends that. A delete leaves the slow
// watch of a running instance: to cancel it is one more workflow task, and it ends with
// the workflow.
func (e *entity) watching(ctx, outer workflow.Context, w wait) (of workflow.Context, end func()) {
	if e.version < versionLetGo || w != watch(paceSteady) {
		return ctx, func() {}
	}
	of, cancel := workflow.WithCancel(outer)
	return of, func() {
		if !e.state.Deleting {
			cancel()
		}
	}
}

// saw is what a wait ended with; nil for nothing that the next round has to know. Who
// asked for something else meanwhile did not ask about a Prepare.
func (e *entity) saw(ctx workflow.Context, w wait, f workflow.Future) *observation {
	switch {
	case !f.IsReady():
	case w.kind == kindWatch:
		return newsOf(ctx, f)
	case w.kind == kindPrepare && !e.woken:
		return prepared(ctx, f)
	}
	return nil
}

// heed acts on the clocks that rang during a wait.
func (e *entity) heed(ctx workflow.Context, hold, late clock) {
	if hold.over(e.state.HoldUntil) {
		e.resumeHeld(ctx, "the time that the hold was asked for is over")
	}
	if late.rang() {
		e.passWaiting(ctx)
	}
}

// outgrown reports whether the run should hand over. A wait ends when it is; it is
// acted on between rounds only, when no Create or Delete is in flight. A timer that
// was not waited for to its end goes along.
func (e *entity) outgrown(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return e.renew || info.GetContinueAsNewSuggested() ||
		workflow.Now(ctx).Sub(info.WorkflowStartTime) > MaxRunAge
}

// drain takes the mail and lets running handlers finish before the run closes, and
// shows what they did: their callers are answered with it. The condition that ends it
// took the mail last, so nothing arrives in between.
func (e *entity) drain(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool {
		e.takeMail()
		return workflow.AllHandlersFinished(ctx)
	})
	if e.dirty {
		e.publish(ctx)
	}
}

// carry is the input of the next run. The UID goes along because an adopted one is
// not the first run ID.
func (e *entity) carry() Input {
	return Input{UID: e.uid, State: &e.state}
}
