package tracing

import (
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// causeHolds is how long after a message what a workflow does is done for it. After
// that it looks after itself, which is nobody's request.
const causeHolds = 15 * time.Minute

// causes puts what a workflow does below the last update that asked for something, or
// the request that started it: a workflow of months does the bidding of many.
type causes struct {
	interceptor.WorkerInterceptorBase
	tracer  interceptor.Tracer
	options TemporalOptions
}

// InterceptWorkflow follows one run.
func (c *causes) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	r := &run{causes: c}
	r.Next = next
	return r
}

// run is one run of a workflow, and what its last message came from.
type run struct {
	interceptor.WorkflowInboundInterceptorBase
	*causes
	cause interceptor.TracerSpan // nil: nothing
	until time.Time
}

// Init is around what the workflow asks for.
func (r *run) Init(out interceptor.WorkflowOutboundInterceptor) error {
	o := &outbound{run: r}
	o.Next = out
	return r.Next.Init(o)
}

// ExecuteWorkflow shows the start of a run as a span of its own, once. A run that
// follows on another one was asked for by nobody.
func (r *run) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	info := workflow.GetInfo(ctx)
	if info.ContinuedExecutionRunID == "" {
		r.adopt(ctx)
	}
	if r.cause != nil && !workflow.IsReplaying(ctx) {
		span, err := r.tracer.StartSpan(&interceptor.TracerStartSpanOptions{
			Operation: runWorkflow, Name: info.WorkflowType.Name, Parent: r.cause, Time: info.WorkflowStartTime,
			Tags: map[string]string{
				"temporalWorkflowID": info.WorkflowExecution.ID, "temporalRunID": info.WorkflowExecution.RunID,
			},
		})
		if err == nil {
			span.Finish(&interceptor.TracerFinishSpanOptions{})
		}
	}
	return r.Next.ExecuteWorkflow(ctx, in)
}

// ExecuteUpdate is done for the update's sender.
func (r *run) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	r.adopt(ctx)
	return r.Next.ExecuteUpdate(ctx, in)
}

// adopt reads the cause from the header of a message, which is in the history: a
// worker that takes the workflow over finds the same. One without leaves what is known.
// Signals are left out: sweeps send them all the time.
func (r *run) adopt(ctx workflow.Context) {
	payload := interceptor.WorkflowHeader(ctx)[r.tracer.Options().HeaderKey]
	if payload == nil {
		return
	}
	var sent map[string]string
	if err := converter.GetDefaultDataConverter().FromPayload(payload, &sent); err != nil {
		return
	}
	ref, err := r.tracer.UnmarshalSpan(sent)
	if err != nil || ref == nil {
		return
	}
	span, err := r.tracer.StartSpan(&interceptor.TracerStartSpanOptions{Operation: join, Parent: ref})
	if err == nil {
		r.cause, r.until = span, workflow.Now(ctx).Add(causeHolds)
	}
}

// outbound is what a workflow asks for.
type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	run *run
}

// ExecuteActivity puts an activity below the cause, or below nothing.
func (o *outbound) ExecuteActivity(ctx workflow.Context, activity string, args ...any) workflow.Future {
	cause := o.run.cause
	if workflow.Now(ctx).After(o.run.until) || slices.Contains(o.run.options.Background, activity) {
		cause = nil
	}
	return o.Next.ExecuteActivity(workflow.WithValue(ctx, o.run.tracer.Options().SpanContextKey, cause), activity, args...)
}
