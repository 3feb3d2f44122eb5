package realserver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/feedback"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// A storm is large enough for some runs: a server ends one at 4 MiB of history.
const (
	stormBatches = 120
	stormBans    = 16 // of a batch, each told once and never again
	stormNoise   = 230
	stormSenders = 8
	stormProxies = 5
	stormRuns    = 2 // at least
)

// judgedPool are proxies without workflows: it counts what is asked of each.
type judgedPool struct {
	proxies []v1.Proxy
	mu      sync.Mutex
	asked   map[string]int
}

func (p *judgedPool) Proxies(context.Context, string) ([]v1.Proxy, error) { return p.proxies, nil }

func (p *judgedPool) Hold(_ context.Context, a activities.Accused, _ v1.Hold, _ string) (bool, error) {
	return p.ask("hold " + a.Name)
}

func (p *judgedPool) Replace(_ context.Context, a activities.Accused, _, _ string) (bool, error) {
	return p.ask("replace " + a.Name)
}

func (p *judgedPool) ask(what string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[what]++
	return true, nil
}

func (p *judgedPool) all() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]int{}
	for what, n := range p.asked {
		all[what] = n
	}
	return all
}

func newJudgedPool(provider string, at time.Time) *judgedPool {
	pool := &judgedPool{asked: map[string]int{}}
	for i := range 2 * stormProxies {
		pool.proxies = append(pool.proxies, v1.Proxy{
			Metadata: v1.Metadata{Namespace: "default", Name: fmt.Sprintf("p%d", i), UID: fmt.Sprintf("uid-%d", i)},
			Spec:     v1.ProxySpec{Provider: provider, Port: 3128},
			Status:   v1.ProxyStatus{Phase: v1.PhaseRunning, IP: "192.0.2.1", InstanceCreatedAt: at},
		})
	}
	return pool
}

// stormBatch has bans that no other batch has, and what makes it heavy.
func stormBatch(pool *judgedPool, n int, at time.Time) fleet.FeedbackBatch {
	b := fleet.FeedbackBatch{Policy: fleet.FeedbackPolicy{
		BanFor: time.Hour, Window: time.Hour, Replace: 2, Budget: feedback.MaxBudget,
	}}
	of := func(i int) fleet.FeedbackReport {
		p := pool.proxies[i%stormProxies]
		return fleet.FeedbackReport{
			Provider: p.Spec.Provider, Namespace: "default", Name: p.Metadata.Name, UID: p.Metadata.UID,
			MadeAt: p.Status.InstanceCreatedAt, At: at,
		}
	}
	for i := range stormBans {
		r := of(i)
		r.Kind, r.Domain, r.EgressIP = v1.ReportBanned, fmt.Sprintf("site-%d.example", i), fmt.Sprintf("10.0.%d.%d", n, i)
		b.Reports = append(b.Reports, r)
	}
	for i := range stormNoise {
		r := of(i)
		r.Kind, r.Domain = v1.ReportSlow, fmt.Sprintf("%s-%d.example", strings.Repeat("x", 200), i%20)
		b.Reports = append(b.Reports, r)
	}
	return b
}

// However many batches arrive while a run becomes the next one, each is heard once.
func TestAStormOfReportsLosesNoneAndCountsNoneTwice(t *testing.T) {
	l := newLab(t, quick())
	at := time.Now().UTC().Truncate(time.Second)
	pool := newJudgedPool(l.name, at)
	l.hands = []any{&activities.Feedback{Fleet: pool}}
	f := fleet.New(l.temporal, l.name, fleet.WithTaskQueue(l.queue))
	l.work()
	wanted := map[string]map[string]int64{}
	batches := make(chan fleet.FeedbackBatch, stormBatches)
	for n := range stormBatches {
		b := stormBatch(pool, n, at)
		for _, r := range b.Reports[:stormBans] {
			if wanted[r.Domain] == nil {
				wanted[r.Domain] = map[string]int64{}
			}
			wanted[r.Domain][r.EgressIP] = at.Add(time.Hour).Unix()
		}
		batches <- b
	}
	close(batches)
	once := map[string]int{}
	for _, p := range pool.proxies[:stormProxies] {
		once["replace "+p.Metadata.Name] = 1
	}
	require.NoError(t, f.SendFeedback(t.Context(), <-batches))
	require.Eventually(t, func() bool { return len(pool.all()) == len(once) }, soon, tick, "the first look")

	var senders sync.WaitGroup
	faults := make(chan error, stormBatches)
	for range stormSenders {
		senders.Go(func() {
			for b := range batches {
				faults <- f.SendFeedback(t.Context(), b)
			}
		})
	}
	senders.Wait()
	close(faults)
	for err := range faults {
		require.NoError(t, err)
	}
	var is fleet.Bans
	require.Eventually(t, func() bool {
		bans, err := f.Bans(t.Context(), 0)
		is = bans
		return err == nil && bans.Revision >= stormBatches*stormBans
	}, soon, tick, "none is lost")
	require.Equal(t, wanted, is.Bans)
	require.EqualValues(t, stormBatches*stormBans, is.Revision, "each changed what is remembered once")
	require.Zero(t, is.Dropped)
	// The next look is half a minute after the first one, in another run. It comes to one
	// more proxy, and knows what was done of the others.
	last := stormBatch(pool, stormBatches, at)
	for i := range last.Reports {
		p := pool.proxies[stormProxies]
		last.Reports[i].Name, last.Reports[i].UID = p.Metadata.Name, p.Metadata.UID
	}
	require.NoError(t, f.SendFeedback(t.Context(), last))
	once["replace "+pool.proxies[stormProxies].Metadata.Name] = 1
	require.Eventually(t, func() bool { return len(pool.all()) == len(once) }, soon, tick)
	require.Equal(t, once, pool.all(), "and none led to anything twice")
	require.NoError(t, l.temporal.CancelWorkflow(t.Context(), feedback.WorkflowID(l.name), ""))
	require.Error(t, l.temporal.GetWorkflow(t.Context(), feedback.WorkflowID(l.name), "").Get(t.Context(), nil))
	require.GreaterOrEqual(t, l.rememberedIn(), stormRuns, "the storm went over the end of some runs")
}

// rememberedIn counts the runs of the workflow that remembers, and proves each deterministic.
func (l *lab) rememberedIn() (runs int) {
	l.t.Helper()
	id := feedback.WorkflowID(l.name)
	d, err := l.temporal.DescribeWorkflow(l.t.Context(), id, "")
	require.NoError(l.t, err)
	for run := d.RawResponse.WorkflowExecutionInfo.FirstRunId; run != ""; runs++ {
		h := &history.History{}
		it := l.temporal.GetWorkflowHistory(l.t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			ev, err := it.Next()
			require.NoError(l.t, err)
			h.Events = append(h.Events, ev)
		}
		r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{})
		require.NoError(l.t, err)
		workflows.Register(r, proxy.DefaultTiming())
		require.NoError(l.t, r.ReplayWorkflowHistoryWithOptions(devserver.Quiet(), h, worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: id, RunID: run},
		}))
		run = h.Events[len(h.Events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return runs
}
