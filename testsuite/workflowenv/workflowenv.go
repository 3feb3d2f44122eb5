// Package workflowenv makes the environment that a workflow is tested in without a
// Temporal server. It may import the SDK alone. Start reading at New.
package workflowenv

import (
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// ends a test that hangs. A machine that is busy with other suites is slow, and the SDK's
// own bounds, 1 s for a step and 3 s for a test, are met there by what does not hang.
const ends = 30 * time.Second

// New returns an environment that waits as long as a busy machine needs. Time in the
// workflow is skipped, as always. What the suite is to have is set before.
func New(with ...func(*testsuite.WorkflowTestSuite)) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	for _, set := range with {
		set(&suite)
	}
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(ends)
	env.SetWorkerOptions(Options(worker.Options{}))
	return env
}

// Options are those of a worker in such a test.
func Options(o worker.Options) worker.Options {
	o.DeadlockDetectionTimeout = ends
	return o
}
