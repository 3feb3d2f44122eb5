package cost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
)

const (
	readAtOnce = 16
	pageSize   = 1000
	scheduler  = "TemporalNamespaceDivision = 'TemporalScheduler'"
)

// meter reads what a server has done: every history of its namespace, the schedulers'
// too, and the counter that the server has of actions.
type meter struct {
	temporal client.Client
	port     int // of the server's metrics, on this machine

	mu    sync.Mutex
	ended map[string]counts // by run ID: these do not change any more
}

// reading is what a server had done when it was read.
type reading struct {
	counts
	counter map[string]float64 // actions, by their type
}

// since is what was done between two readings.
func (r reading) since(before reading) reading {
	out := reading{counts: r.plus(before.times(-1)), counter: map[string]float64{}}
	for what, n := range r.counter {
		out.counter[what] = n - before.counter[what]
	}
	return out
}

// read returns what the server has done so far.
func (m *meter) read(ctx context.Context) (r reading, err error) {
	if r.counter, err = m.actions(ctx); err != nil {
		return r, err
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	var mu sync.Mutex
	for _, query := range []string{"", scheduler} {
		runs, err := m.runs(ctx, query)
		if err != nil {
			return r, errors.Join(err, group.Wait())
		}
		for _, run := range runs {
			group.Go(func() error {
				one, err := m.of(within, run, query == scheduler)
				mu.Lock()
				defer mu.Unlock()
				r.counts = r.plus(one)
				return err
			})
		}
	}
	err = group.Wait()
	r.Actions += outside(r.counter)
	r.Counter = all(r.counter)
	return r, err
}

// settled reads until two readings in a row are the same.
func (m *meter) settled(ctx context.Context) (reading, error) {
	const apart = time.Second
	before, err := m.read(ctx)
	for err == nil {
		if err = pause(ctx, apart); err != nil {
			break
		}
		var now reading
		if now, err = m.read(ctx); now.counts == before.counts {
			return now, err
		}
		before = now
	}
	return before, err
}

// runs are the runs that Visibility finds.
func (m *meter) runs(ctx context.Context, query string) (out []*workflow.WorkflowExecutionInfo, err error) {
	for next, more := []byte(nil), true; more; more = len(next) > 0 {
		page, err := m.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: pageSize, NextPageToken: next,
		})
		if err != nil {
			return nil, err
		}
		out, next = append(out, page.GetExecutions()...), page.GetNextPageToken()
	}
	return out, nil
}

// of counts one run.
func (m *meter) of(ctx context.Context, run *workflow.WorkflowExecutionInfo, scheduler bool) (counts, error) {
	m.mu.Lock()
	known, ok := m.ended[run.GetExecution().GetRunId()]
	m.mu.Unlock()
	if ok {
		return known, nil
	}
	d, err := m.temporal.DescribeWorkflow(ctx, run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId())
	if err != nil {
		return counts{}, err
	}
	events, err := m.history(ctx, run.GetExecution())
	if err != nil {
		return counts{}, err
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	c := counts{
		Actions: actionsOf(events, scheduler), Events: float64(len(events)),
		Transitions: float64(info.GetStateTransitionCount()),
	}
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ended[run.GetExecution().GetRunId()] = c
	}
	return c, nil
}

func (m *meter) history(ctx context.Context, of *common.WorkflowExecution) (events []*history.HistoryEvent, err error) {
	const everything = enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT
	for it := m.temporal.GetWorkflowHistory(ctx, of.GetWorkflowId(), of.GetRunId(), false, everything); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// actions are what the server has counted in the namespace so far, by their type.
func (m *meter) actions(ctx context.Context) (map[string]float64, error) {
	const namespace, counter = "default", "action"
	address := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)) + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	out := map[string]float64{}
	for name, family := range families {
		if strings.TrimSuffix(name, "_total") != counter { // a later server may add it
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["namespace"] == namespace {
				out[labels["action_type"]] += metric.GetCounter().GetValue()
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: the server has no counter %q of the namespace %s", address, counter, namespace)
	}
	return out, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
