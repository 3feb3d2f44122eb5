package openproxy

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/workflowenv"
)

// check is one run over so many pages in the SDK's test environment.
type check struct {
	*sdktest.TestWorkflowEnvironment
	noted activities.OpenProxyNote
	told  atomic.Int32 // pages
}

func newCheck(t *testing.T, pages int) *check {
	t.Helper()
	t.Parallel()
	c := &check{TestWorkflowEnvironment: workflowenv.New()}
	c.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: "q"})
	c.RegisterWorkflow(Run)
	c.RegisterActivity(here)
	c.RegisterActivity(outside)
	plan := activities.OpenProxyPlan{Aims: map[string]activities.Aim{"": {Address: "target.example:443"}}}
	for i := range pages {
		plan.Pages = append(plan.Pages, fmt.Append(nil, i))
	}
	c.OnActivity(here.PlanOpenProxies, mock.Anything).Return(plan, nil)
	c.OnActivity(here.NoteOpenProxies, mock.Anything, mock.Anything).Return(
		func(_ context.Context, n activities.OpenProxyNote) error { c.noted = n; return nil })
	c.OnActivity(here.TellNoSecondProber, mock.Anything, mock.Anything).Return(
		func(context.Context, []byte) (activities.OpenProxyReport, error) {
			c.told.Add(1)
			return activities.OpenProxyReport{Asked: 1, Counts: map[string]activities.Openings{"p": {Unknown: 1}}}, nil
		})
	return c
}

func (c *check) asks(do func(context.Context, activities.OutsideBatch) (activities.OpenProxyReport, error)) {
	c.OnActivity(outside.AskAsStranger, mock.Anything, mock.Anything).Return(do)
}

func (c *check) runs(t *testing.T) (r Result, err error) {
	t.Helper()
	c.ExecuteWorkflow(Run, Input{})
	require.True(t, c.IsWorkflowCompleted())
	if err = c.GetWorkflowError(); err == nil {
		require.NoError(t, c.GetWorkflowResult(&r))
	}
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		require.NoError(t, failed.Details(&r))
	}
	return r, err
}

func TestEveryPageIsAskedOutsideAndAFewAtOnce(t *testing.T) {
	c := newCheck(t, 2*atOnce+1)
	var now, most, asked atomic.Int32
	c.asks(func(ctx context.Context, in activities.OutsideBatch) (activities.OpenProxyReport, error) {
		asked.Add(1)
		for n := now.Add(1); ; {
			if was := most.Load(); was >= n || most.CompareAndSwap(was, n) {
				break
			}
		}
		defer now.Add(-1)
		if got := activity.GetInfo(ctx).TaskQueue; got != "q-outside" {
			return activities.OpenProxyReport{}, temporal.NewNonRetryableApplicationError("on queue "+got, "test", nil)
		}
		return activities.OpenProxyReport{
			Asked: 2, Counts: map[string]activities.Openings{"p": {Open: 1, Closed: 1}}, Open: []string{string(in.Begins)},
		}, nil
	})
	r, err := c.runs(t)
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.EqualValues(t, 2*atOnce+1, asked.Load())
	require.LessOrEqual(t, most.Load(), int32(atOnce))
	require.Equal(t, map[string]activities.Openings{"p": {Open: 2*atOnce + 1, Closed: 2*atOnce + 1}}, r.Counts)
	require.Len(t, r.Open, 2*atOnce+1)
	require.Equal(t, activities.OpenProxyNote{Counts: r.Counts, Whole: true}, c.noted)
	require.Zero(t, c.told.Load())
	require.Contains(t, r.Markdown(), "| p | 9 | 9 | 0 |")
	require.Contains(t, r.Markdown(), "- **open**: 8")
}

func TestASecondProberThatIsAwayIsWaitedForOnce(t *testing.T) {
	c := newCheck(t, 3*atOnce)
	c.asks(func(context.Context, activities.OutsideBatch) (activities.OpenProxyReport, error) {
		return activities.OpenProxyReport{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	})
	r, err := c.runs(t)
	failed, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, ErrNoSecondProber, failed.Type())
	require.True(t, failed.NonRetryable())
	require.ErrorContains(t, err, "role outside")
	require.True(t, r.NoSecondProber)
	require.EqualValues(t, 3*atOnce, c.told.Load())
	require.Equal(t, 3*atOnce, r.Asked)
	require.False(t, c.noted.Whole)
	require.Contains(t, r.Markdown(), "No second prober")
	c.AssertNumberOfCalls(t, "AskAsStranger", atOnce)
}

func TestAPageThatFailsIsAFaultAndNoAbsence(t *testing.T) {
	c := newCheck(t, 2)
	c.asks(func(_ context.Context, in activities.OutsideBatch) (activities.OpenProxyReport, error) {
		if string(in.Begins) == "0" {
			return activities.OpenProxyReport{}, temporal.NewNonRetryableApplicationError("Visibility is away", "test", nil)
		}
		return activities.OpenProxyReport{Asked: 1, Counts: map[string]activities.Openings{"p": {Closed: 1}}}, nil
	})
	r, err := c.runs(t)
	require.NoError(t, err)
	require.Len(t, r.Faults, 1)
	require.Equal(t, 1, r.Asked)
	require.Zero(t, c.told.Load())
	require.False(t, c.noted.Whole, "not everything was seen")
	require.Contains(t, r.Markdown(), "- a page failed: ")
}

func TestAResultHasAnEnd(t *testing.T) {
	t.Parallel()
	r := Result{Counts: map[string]activities.Openings{}}
	for range 3 {
		r.add(activities.OpenProxyReport{
			Open:    make([]string, activities.OpenBatchSize),
			Changed: make([]activities.OpenProxyChange, activities.OpenBatchSize),
		})
	}
	r.Changed[0] = activities.OpenProxyChange{Proxy: "default/a", Status: v1.ConditionTrue, Reason: v1.ReasonOpenProxy}
	r.cut()
	require.Len(t, r.Open, linesKept)
	require.Len(t, r.Changed, linesKept)
	require.Equal(t, 2*(3*activities.OpenBatchSize-linesKept), r.Unlisted)
	require.Contains(t, r.Markdown(), "- changed: default/a is **OpenProxy**")
}

func TestAWorstRunEndsWithinItsBound(t *testing.T) {
	t.Parallel()
	require.Less(t, Within, Interval, "a run does not overlap the next one")
	require.Less(t, planWithin+patience+batchTotal+batchWithin+planWithin, Within)
	require.Greater(t, batchWithin*4/5, 2*20*time.Second, "two tunnels, and the way to the target, twice over")
}
