package proxy

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

var instances *activities.Instances // nil on purpose: only its method names are used

// observe looks at the backend, unless the wait has just done so, and then reads what
// the spec's secret holds: a message may have changed the spec during the look.
func (e *entity) observe(ctx workflow.Context) observation {
	o := e.seen
	e.seen = nil
	if e.state.SkipCleanup != "" {
		o = &observation{} // the backend is not asked any more
	}
	if o == nil {
		o = e.look(ctx)
	}
	for o.Secret == nil && e.state.needsDigest() {
		o.Secret = e.refreshDigest(ctx)
	}
	o.At = workflow.Now(ctx)
	o.DeleteDue = o.At.Sub(e.state.AskedAt) >= deleteEvery
	o.CreateDue = e.state.createDue(o.At)
	return e.state.settle(*o, e.uid)
}

// look asks the provider. An instance whose ID is unknown is looked for by UID, but
// only where that matters.
func (e *entity) look(ctx workflow.Context) *observation {
	ctx = e.calling(ctx, "look at the instance", activities.PriorityRead)
	switch {
	case e.state.Status.ProviderID != "":
		return e.answer(ctx, instances.GetInstance, e.ref())
	case e.state.unresolved():
		own := activities.OwnRef{Provider: e.state.Spec.Provider, UID: e.uid}
		return e.answer(ctx, instances.FindInstance, own)
	default:
		return &observation{}
	}
}

// answer asks the provider, unless it turns out that nobody waits for it.
func (e *entity) answer(ctx workflow.Context, activity, arg any) *observation {
	f, end := e.call(ctx, activity, arg)
	defer end()
	if !f.IsReady() {
		return &observation{}
	}
	return answerOf(ctx, f)
}

// call makes a provider call and returns when it has ended, or when the proxy is to be
// left as it is: who asked for that does not wait for a backend. The function that it
// returns ends a call that goes on.
func (e *entity) call(ctx workflow.Context, activity, arg any) (workflow.Future, workflow.CancelFunc) {
	ctx, end := workflow.WithCancel(ctx)
	f := workflow.ExecuteActivity(ctx, activity, arg)
	for {
		_ = workflow.Await(ctx, func() bool {
			if e.version >= versionDeadlines {
				e.state.Messages += take(e.mail.delete, e.onDelete) // the wish may come as a signal
			}
			return f.IsReady() || e.state.SkipCleanup != "" || e.unseen()
		})
		if !e.unseen() {
			return f, end
		}
		e.publish(ctx)
	}
}

// unseen reports whether a message changed what is shown while the backend is asked:
// who reads after an answer must find what it said.
func (e *entity) unseen() bool { return e.dirty && e.version >= versionShown }

// errLeft is the outcome of a call that was not waited for.
var errLeft = errors.New("the call was not waited for: the proxy is left as it is")

// get returns how a call ended.
func (e *entity) get(ctx workflow.Context, activity, arg, out any) error {
	f, end := e.call(ctx, activity, arg)
	defer end()
	if !f.IsReady() {
		return errLeft
	}
	return f.Get(ctx, out)
}

// refreshDigest learns what a secretRef holds. A message that asks for it meanwhile
// is not forgotten.
func (e *entity) refreshDigest(ctx workflow.Context) *failure {
	ref := *e.state.Spec.CloudInit.SecretRef
	e.state.SecretStale = false
	ctx = e.calling(ctx, "read the digest of the cloud-init secret", activities.PriorityRead)
	in := activities.DigestInput{Provider: e.state.Spec.Provider, Ref: ref}
	var digest activities.SecretDigest
	if err := e.get(ctx, instances.DigestCloudInit, in, &digest); err != nil {
		e.state.SecretStale = true
		return &failure{Fault: activities.FaultOf(err), Look: true}
	}
	e.state.Secret = &digest
	return nil
}

// answerOf reads the result of any look.
func answerOf(ctx workflow.Context, f workflow.Future) *observation {
	var a activities.Answer
	if err := f.Get(ctx, &a); err != nil {
		return &observation{Failure: &failure{Fault: activities.FaultOf(err), Look: true}}
	}
	switch {
	case a.CreateFailed != nil:
		return &observation{CreateFailed: &failure{Fault: *a.CreateFailed, Look: true}}
	case a.Instance != nil || a.Gone:
		return &observation{Instance: a.Instance, Gone: a.Gone}
	default:
		return &observation{Failure: &failure{Look: true, Fault: activities.Fault{
			Class: providers.ErrTransient, Text: "the look had an answer that this version does not know",
		}}}
	}
}

// newsOf reads what a watch saw. One that ended without a word of the backend (no
// worker took it up in time) has seen nothing.
func newsOf(ctx workflow.Context, f workflow.Future) *observation {
	if err := f.Get(ctx, nil); err != nil && !activities.Classified(err) {
		return nil
	}
	return answerOf(ctx, f)
}

// execute carries a plan out. It returns nil, or what the backend had against it.
func (e *entity) execute(ctx workflow.Context, p plan) *failure {
	switch p.Do {
	case actionCreate:
		return e.create(ctx)
	case actionDelete:
		return e.remove(ctx)
	case actionForget:
		e.state.forget()
	case actionNone:
	}
	return nil
}

// create remembers the attempt before it makes it: whatever becomes of the call, the
// state says that there may be an instance.
func (e *entity) create(ctx workflow.Context) *failure {
	before := e.state
	e.state.beginCreate(workflow.Now(ctx))
	ctx = activities.WithCall(ctx, activities.Call{
		Limits: e.timing.Create, Summary: "create the instance on " + e.state.Spec.Provider,
		Priority: activities.PriorityCreate,
	})
	var made activities.Created
	if err := e.get(ctx, instances.CreateInstance, e.createInput(), &made); err != nil {
		f := &failure{Fault: activities.FaultOf(err)}
		e.state.SecretStale = true
		switch {
		case f.Reason == v1.ReasonProviderNotConfigured: // no backend was asked
			e.state.Creating, e.state.AnswerAt = before.Creating, before.AnswerAt
			if e.version >= versionDeadlines && !before.Ran && !before.Began.IsZero() {
				e.state.Began, e.state.Overdue = before.Began, before.Overdue // it is late since then
			}
		case f.Reason == v1.ReasonNotPrepared && e.version >= versionPrepare: // nothing was made
			e.state.Creating, e.state.AnswerAt, e.state.Lacking = before.Creating, before.AnswerAt, f.Text
			return nil
		case f.Class == providers.ErrTransient: // it may have been made
			e.state.AnswerAt = workflow.Now(ctx)
		}
		return f
	}
	e.state.Status.ProviderID, e.state.Creating, e.state.AnswerAt = made.ID, false, workflow.Now(ctx)
	return nil
}

// remove asks for the instance to go; the looks that follow say when it has.
func (e *entity) remove(ctx workflow.Context) *failure {
	ctx = e.calling(ctx, "delete the instance", activities.PriorityDelete)
	if err := e.get(ctx, instances.DeleteInstance, e.ref(), nil); err != nil {
		return &failure{Fault: activities.FaultOf(err)}
	}
	e.state.Removing, e.state.AskedAt = true, workflow.Now(ctx)
	return nil
}

// start returns the future that a plan waits for.
func (e *entity) start(ctx workflow.Context, w wait) workflow.Future {
	if w.kind == kindPrepare {
		e.state.Wait = nil
		return e.prepare(ctx)
	}
	if w.kind != kindWatch {
		return workflow.NewTimerWithOptions(ctx, e.rest(ctx, w), workflow.TimerOptions{Summary: w.pace.summary()})
	}
	e.state.Wait = nil
	pace := e.timing.of(w.pace)
	ctx = activities.WithWatch(ctx, activities.Call{
		Limits: e.timing.watchLimits(pace), Summary: w.pace.summary(), Attempts: e.timing.Looks,
	})
	return workflow.ExecuteActivity(ctx, instances.AwaitChange, activities.WatchInput{
		Ref: e.ref(), Known: e.state.Known, Fresh: e.looked,
		Poll: pace.Poll, MaxPoll: pace.Max, Lease: pace.Lease, Outlast: e.timing.Outlast,
		Within: e.reportWithin(workflow.Now(ctx)),
	})
}

// prepare begins to fetch what the create lacked. It ends with its wait.
func (e *entity) prepare(ctx workflow.Context) workflow.Future {
	ctx = activities.WithCall(ctx, activities.Call{
		Limits: e.timing.Prepare, Summary: "prepare " + e.state.Spec.Provider + " for the instance",
		Priority: activities.PriorityCreate,
	})
	spec := e.state.Spec
	return workflow.ExecuteActivity(ctx, instances.PrepareInstance, activities.PrepareInput{
		Provider: spec.Provider, UID: e.uid, Attempt: e.state.Attempt,
		Owner: providers.Owner(e.namespace, e.name), Placement: providers.Placement(spec.Placement), Port: spec.Port,
	})
}

// prepared is what a Prepare that has ended says against the create that follows.
func prepared(ctx workflow.Context, f workflow.Future) *observation {
	if err := f.Get(ctx, nil); err != nil {
		return &observation{Failure: &failure{Fault: activities.FaultOf(err)}}
	}
	return nil
}

// rest is how long a timer still has to run: what the run before left of it, or all.
// A timer of 0 would be no event.
func (e *entity) rest(ctx workflow.Context, w wait) time.Duration {
	now := workflow.Now(ctx)
	if e.state.Wait == nil {
		e.state.Wait = &pending{Pace: w.pace, Until: now.Add(e.pause(w.pace))}
	}
	return max(e.state.Wait.Until.Sub(now), time.Second)
}

// pause is how long a timer of a pace runs now.
func (e *entity) pause(p pace) time.Duration {
	if p == paceRemake {
		return e.timing.pause(p, e.state.Makes-1)
	}
	return e.timing.pause(p, e.state.Failures)
}

func (e *entity) calling(ctx workflow.Context, summary string, priority int) workflow.Context {
	return activities.WithCall(ctx, activities.Call{
		Limits: e.timing.Call, Summary: summary, Priority: priority,
	})
}

func (e *entity) ref() activities.InstanceRef {
	return activities.InstanceRef{Provider: e.state.Spec.Provider, ID: e.state.Status.ProviderID}
}

func (e *entity) createInput() activities.CreateInput {
	spec := e.state.Spec
	return activities.CreateInput{
		Provider: spec.Provider, UID: e.uid, Attempt: e.state.Attempt,
		Owner: providers.Owner(e.namespace, e.name), Labels: e.state.Labels,
		SpecMark:  specMarkOf(spec, e.state.userData()),
		Placement: providers.Placement(spec.Placement), CloudInit: spec.CloudInit,
		Digest: e.state.userData(), Port: spec.Port,
	}
}
