package fleet

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

const (
	stillRuns  = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	continued  = enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	terminated = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
)

// seen is one answer about the last run of a workflow.
type seen struct {
	run    string
	status enums.WorkflowExecutionStatus
}

// describing answers once with each of what it has seen. All runs are of one life.
type describing struct {
	client.Client
	answers []seen
}

func (d *describing) DescribeWorkflow(
	_ context.Context, id, run string,
) (*client.WorkflowExecutionDescription, error) {
	if run != "" || len(d.answers) == 0 {
		return nil, serviceerror.NewNotFound("no such run")
	}
	a := d.answers[0]
	d.answers = d.answers[1:]
	return &client.WorkflowExecutionDescription{RawResponse: &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{
			Execution: &common.WorkflowExecution{WorkflowId: id, RunId: a.run}, FirstRunId: "life", Status: a.status,
		},
	}}, nil
}

func TestARunThatWasFollowedByAnotherConvictsNobody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []seen
		want    OwnerState
		fault   string
	}{
		"runs": {[]seen{{"1", stillRuns}}, OwnerState{Found: true, Running: true, Status: "Running"}, ""},
		"closed": {
			[]seen{{"1", terminated}, {"1", terminated}}, OwnerState{Found: true, Ended: true, Status: "Terminated"}, "",
		},
		"was never there": {nil, OwnerState{}, ""},
		"continued as new while it was asked for": {
			[]seen{{"1", continued}, {"2", stillRuns}}, OwnerState{Found: true, Running: true, Status: "Running"}, "",
		},
		"reset while it was asked for": {
			[]seen{{"1", terminated}, {"2", stillRuns}}, OwnerState{Found: true, Running: true, Status: "Running"}, "",
		},
		"goes on and on": {[]seen{{"1", continued}, {"2", continued}}, OwnerState{}, "went on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := New(&describing{answers: tc.answers}, "test").Owner(t.Context(), "default/a", "life")
			if tc.fault != "" {
				require.ErrorContains(t, err, tc.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}
