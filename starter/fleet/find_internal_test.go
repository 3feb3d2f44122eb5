package fleet

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// paged lists so many pages of two workflows, and fails after them where it has a fault.
type paged struct {
	client.Client
	pages int
	fault error
	asked []string // the tokens
}

func (p *paged) ListWorkflow(
	_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	p.asked = append(p.asked, string(r.GetNextPageToken()))
	n := len(p.asked)
	if p.fault != nil && n > p.pages {
		return nil, p.fault
	}
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	for i := range 2 {
		id := strconv.Itoa(n) + "-" + strconv.Itoa(i)
		page.Executions = append(page.Executions, &workflow.WorkflowExecutionInfo{
			Execution: &common.WorkflowExecution{WorkflowId: id},
		})
	}
	if n < p.pages || p.fault != nil {
		page.NextPageToken = []byte(strconv.Itoa(n))
	}
	return page, nil
}

func TestEveryPageIsReadInItsOrder(t *testing.T) {
	t.Parallel()
	p := &paged{pages: 3}
	var ids []string
	for info, err := range New(p, "test").find(t.Context(), "") {
		require.NoError(t, err)
		ids = append(ids, info.GetExecution().GetWorkflowId())
	}
	require.Equal(t, []string{"1-0", "1-1", "2-0", "2-1", "3-0", "3-1"}, ids)
	require.Equal(t, []string{"", "1", "2"}, p.asked)
}

func TestAPageThatCannotBeReadIsNoEnd(t *testing.T) {
	t.Parallel()
	p := &paged{pages: 2, fault: serviceerror.NewUnavailable("away")}
	var last error
	for _, err := range New(p, "test").find(t.Context(), "") {
		last = err
	}
	require.ErrorIs(t, last, ErrUnavailable)
	_, err := New(&paged{fault: serviceerror.NewUnavailable("away")}, "test").List(t.Context(), "")
	require.ErrorIs(t, err, ErrUnavailable)
}

func TestWhoStopsReadsNoFurtherPage(t *testing.T) {
	t.Parallel()
	p := &paged{pages: 100}
	for _, err := range New(p, "test").find(t.Context(), "") {
		require.NoError(t, err)
		break
	}
	require.Len(t, p.asked, 1)
}
