package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const pagesThere = 6

// shelf is Visibility with so many pages of one proxy each. It remembers its pages
// without keeping them.
type shelf struct {
	client.Client
	t      *testing.T
	breaks int // the page that cannot be had; 0: none
	given  []weak.Pointer[workflow.WorkflowExecutionInfo]
}

func (s *shelf) ListWorkflow(
	_ context.Context, _ *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	runtime.GC()
	for i, page := range s.given[:max(0, len(s.given)-1)] { // the last one may still be in a register
		require.Nil(s.t, page.Value(), "page %d is kept while page %d is asked for", i+1, len(s.given)+1)
	}
	number := len(s.given) + 1
	if number == s.breaks {
		return nil, errors.New("away")
	}
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: fmt.Sprintf("p%d", number), UID: fmt.Sprint(number)}}
	memo, err := converter.GetDefaultDataConverter().ToPayload(p)
	require.NoError(s.t, err)
	info := &workflow.WorkflowExecutionInfo{
		Execution:  &common.WorkflowExecution{WorkflowId: proxy.WorkflowID("default", p.Metadata.Name)},
		FirstRunId: p.Metadata.UID, Memo: &common.Memo{Fields: map[string]*common.Payload{proxy.MemoProxy: memo}},
	}
	s.given = append(s.given, weak.Make(info))
	answer := &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflow.WorkflowExecutionInfo{info}}
	if number < pagesThere {
		answer.NextPageToken = []byte{byte(number)}
	}
	return answer, nil
}

func TestAListingHoldsOnePageAtATime(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]func(context.Context, *Client) (int, error){
		"all": func(ctx context.Context, c *Client) (int, error) {
			all, err := c.List(ctx, "")
			return len(all), err
		},
		"those of a provider": func(ctx context.Context, c *Client) (int, error) {
			all, err := c.OfProvider(ctx, "local")
			return len(all), err
		},
		"those that run": func(ctx context.Context, c *Client) (int, error) {
			all, err := c.Running(ctx, "local")
			return len(all), err
		},
		"UIDs": func(ctx context.Context, c *Client) (int, error) {
			all, err := c.LivingUIDs(ctx)
			return len(all), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := list(t.Context(), New(&shelf{t: t}, "test"))
			require.NoError(t, err)
			require.Equal(t, pagesThere, found)

			found, err = list(t.Context(), New(&shelf{t: t, breaks: 3}, "test"))
			require.ErrorContains(t, err, "away")
			require.Zero(t, found, "a part of the list is none")
		})
	}
}
