package proxy

import (
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

var instances *activities.Instances // nil on purpose: only its method names are used

// observe looks at the backend, unless the wait has just done so.
func (e *entity) observe(ctx workflow.Context) observation {
	if f := e.refreshDigest(ctx); f != nil {
		return observation{Failure: f}
	}
	o := e.seen
	e.seen = nil
	if o == nil {
		o = e.look(ctx)
	}
	o.DeleteDue = workflow.Now(ctx).Sub(e.state.AskedAt) >= deleteEvery
	return e.state.settle(*o, e.uid)
}

// look asks the provider. An instance whose ID is unknown is looked for by UID, but
// only where that matters.
func (e *entity) look(ctx workflow.Context) *observation {
	ctx = e.calling(ctx, "look at the instance", activities.PriorityRead)
	switch {
	case e.state.Status.ProviderID != "":
		return answerOf(ctx, workflow.ExecuteActivity(ctx, instances.GetInstance, e.ref()))
	case e.state.unresolved():
		own := activities.OwnRef{Provider: e.state.Spec.Provider, UID: e.uid}
		return answerOf(ctx, workflow.ExecuteActivity(ctx, instances.FindInstance, own))
	default:
		return &observation{}
	}
}

// refreshDigest learns what a secretRef holds, before it decides about the spec.
func (e *entity) refreshDigest(ctx workflow.Context) *failure {
	if !e.state.needsDigest() {
		return nil
	}
	ctx = e.calling(ctx, "read the digest of the cloud-init secret", activities.PriorityRead)
	in := activities.DigestInput{Provider: e.state.Spec.Provider, Ref: *e.state.Spec.CloudInit.SecretRef}
	var digest activities.SecretDigest
	if err := workflow.ExecuteActivity(ctx, instances.DigestCloudInit, in).Get(ctx, &digest); err != nil {
		return &failure{Fault: activities.FaultOf(err)}
	}
	e.state.Secret, e.state.SecretStale = &digest, false
	return nil
}

// answerOf reads the result of any look.
func answerOf(ctx workflow.Context, f workflow.Future) *observation {
	var a activities.Answer
	if err := f.Get(ctx, &a); err != nil {
		return &observation{Failure: &failure{Fault: activities.FaultOf(err), Look: true}}
	}
	if a.CreateFailed != nil {
		return &observation{CreateFailed: &failure{Fault: *a.CreateFailed, Look: true}}
	}
	return &observation{Instance: a.Instance, Gone: a.Instance == nil}
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
	unknown := e.state.Creating
	e.state.beginCreate(workflow.Now(ctx))
	ctx = activities.WithCall(ctx, activities.Call{
		Limits: e.timing.Create, Summary: "create the instance on " + e.state.Spec.Provider,
		Priority: activities.PriorityCreate,
	})
	var made activities.Created
	if err := workflow.ExecuteActivity(ctx, instances.CreateInstance, e.createInput()).Get(ctx, &made); err != nil {
		f := &failure{Fault: activities.FaultOf(err)}
		e.state.SecretStale = true
		if f.Reason == v1.ReasonProviderNotConfigured {
			e.state.Creating = unknown // no backend was asked
		}
		return f
	}
	e.state.Status.ProviderID, e.state.Creating = made.ID, false
	return nil
}

// remove asks for the instance to go; the looks that follow say when it has.
func (e *entity) remove(ctx workflow.Context) *failure {
	ctx = e.calling(ctx, "delete the instance", activities.PriorityDelete)
	if err := workflow.ExecuteActivity(ctx, instances.DeleteInstance, e.ref()).Get(ctx, nil); err != nil {
		return &failure{Fault: activities.FaultOf(err)}
	}
	e.state.Removing, e.state.AskedAt = true, workflow.Now(ctx)
	return nil
}

// start returns the future that a plan waits for.
func (e *entity) start(ctx workflow.Context, w wait) workflow.Future {
	if w.kind != kindWatch {
		return workflow.NewTimerWithOptions(ctx, e.timing.pause(w.pace, e.state.Failures),
			workflow.TimerOptions{Summary: w.pace.summary()})
	}
	pace := e.timing.of(w.pace)
	ctx = activities.WithWatch(ctx, activities.Call{
		Limits: e.timing.watchLimits(pace), Summary: w.pace.summary(), Attempts: e.timing.Looks,
	})
	return workflow.ExecuteActivity(ctx, instances.AwaitChange, activities.WatchInput{
		Ref: e.ref(), Known: e.state.Known,
		Poll: pace.Poll, MaxPoll: pace.Max, Lease: pace.Lease, Outlast: e.timing.Outlast,
	})
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
