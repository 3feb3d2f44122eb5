package proxy

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	sdktest "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// calledBy runs a workflow of a type, and returns what is on the stack below it.
func calledBy(t *testing.T, name string, run func(workflow.Context, *Input) (Result, error), input any) (stack string) {
	t.Helper()
	var s sdktest.WorkflowTestSuite
	env := s.NewTestWorkflowEnvironment()
	record := func(ctx workflow.Context, in *Input) (Result, error) {
		stack = string(debug.Stack())
		return run(ctx, in)
	}
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&direct{run: record}}})
	env.RegisterWorkflowWithOptions(record, workflow.RegisterOptions{Name: name})
	env.ExecuteWorkflow(name, input)
	require.NoError(t, env.GetWorkflowError())
	var r Result
	require.NoError(t, env.GetWorkflowResult(&r))
	require.Equal(t, Result{Left: "what it says"}, r)
	return stack
}

func TestAProxyIsCalledWithoutReflectionAndNothingElseIs(t *testing.T) {
	t.Parallel()
	says := func(port int) func(workflow.Context, *Input) (Result, error) {
		return func(_ workflow.Context, in *Input) (Result, error) {
			if port == 0 {
				require.Nil(t, in)
			} else {
				require.Equal(t, port, in.Spec.Port)
			}
			return Result{Left: "what it says"}, nil
		}
	}
	const reflection = "reflect.Value.Call"
	given := Input{}
	given.Spec.Provider, given.Spec.Port = "fake", 3128
	require.NotContains(t, calledBy(t, WorkflowType, says(3128), given), reflection)
	require.Contains(t, calledBy(t, "Another", says(3128), given), reflection)
	require.Contains(t, calledBy(t, WorkflowType, says(0), nil), reflection, "nothing was given, which has no type")
}
