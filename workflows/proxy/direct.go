package proxy

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// Direct returns an interceptor that calls Run itself, and not through the reflection of
// the SDK, whose frames stay on the stack of each workflow that is kept. With them it is
// 16 KiB, and without them 8 (docs/performance.md). It has to be the last one of a worker,
// since it calls none after it. Without it everything is the same but for that.
func (w *Workflow) Direct() interceptor.WorkerInterceptor { return &direct{run: w.Run} }

type direct struct {
	interceptor.WorkerInterceptorBase
	run func(workflow.Context, *Input) (Result, error)
}

// InterceptWorkflow leaves every other type alone.
func (d *direct) InterceptWorkflow(
	ctx workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	if workflow.GetInfo(ctx).WorkflowType.Name != WorkflowType {
		return next
	}
	return &called{interceptor.WorkflowInboundInterceptorBase{Next: next}, d.run}
}

type called struct {
	interceptor.WorkflowInboundInterceptorBase
	run func(workflow.Context, *Input) (Result, error)
}

// ExecuteWorkflow has the arguments decoded already.
func (c *called) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if len(in.Args) == 1 {
		if spec, ok := in.Args[0].(*Input); ok {
			return c.run(ctx, spec)
		}
	}
	return c.Next.ExecuteWorkflow(ctx, in)
}
