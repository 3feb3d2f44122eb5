package realserver

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// In each round of the storm so many signals and updates come from all sides at once,
// and a new run is forced among them: 1,000 and 100 in all.
const (
	rounds               = 10
	senders, signalsEach = 4, 25
	callers, updatesEach = 2, 5
)

func TestNoMessageIsLostOrTakenTwiceAcrossContinueAsNew(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	first := l.runID()
	for round := range rounds {
		l.storm(round)
	}
	const signals, updates = rounds * (senders*signalsEach + 1), rounds * callers * updatesEach
	require.EqualValues(t, 1+updates, l.get().Metadata.Generation, "each update had its effect, once")
	l.deleted()
	require.Equal(t, signals, l.taken(), "each signal is in one run, and was taken there")
	rollovers := l.rollovers(first)
	t.Logf("%d signals and %d updates across %d rollovers", signals, updates, rollovers)
	require.GreaterOrEqual(t, rollovers, rounds)
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate), "no message made another instance")
}

// storm is one round.
func (l *lab) storm(round int) {
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for i := range signalsEach {
				if i%2 == 0 {
					l.signal(proxy.SignalHint, proxy.Hint{})
					continue
				}
				l.signal(proxy.SignalHealth, proxy.HealthReport{Healthy: i%4 == 1, Reason: strconv.Itoa(i)})
			}
		})
	}
	for c := range callers {
		wg.Go(func() {
			for i := range updatesEach {
				n := (round*callers+c)*updatesEach + i
				l.change(n)
				l.change(n - callers*updatesEach) // again, as by a caller whose answer was lost in the run before
			}
		})
	}
	l.handOver(l.runID())
	wg.Wait()
}

// change is an update that counts: it makes a generation, and no other instance. A
// signal that meets the end of a run makes the server give up the updates that came
// with it; their callers are told to ask again, and do.
func (l *lab) change(n int) {
	if n < 0 {
		return
	}
	changed := spec
	changed.HealthCheck.Target = fmt.Sprintf("target-%d:443", n)
	_, _, err := l.Apply(l.t.Context(), l.wanted(changed), fleet.Request{ID: fmt.Sprintf("change-%d", n)})
	for errors.Is(err, fleet.ErrUnavailable) {
		_, _, err = l.Apply(l.t.Context(), l.wanted(changed), fleet.Request{ID: fmt.Sprintf("change-%d", n)})
	}
	assert.NoError(l.t, err)
}

// rollovers counts the runs after the first.
func (l *lab) rollovers(run string) (n int) {
	for ; ; n++ {
		events := l.history(run).Events
		run = events[len(events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if run == "" {
			return n
		}
	}
}

// taken is what the last run says about how many signals were taken in all.
func (l *lab) taken() int {
	l.t.Helper()
	v, err := l.temporal.QueryWorkflow(l.t.Context(), l.id(), "", proxy.QueryMessages)
	require.NoError(l.t, err)
	var n int
	require.NoError(l.t, v.Get(&n))
	return n
}

func TestASlowUpdateSurvivesContinueAsNew(t *testing.T) {
	l := newLab(t, quick())
	slow := &slowUpdates{entered: make(chan struct{}, 99)}
	l.around = []interceptor.WorkerInterceptor{slow}
	l.work()
	l.apply("apply", spec)
	l.running()
	for len(slow.entered) > 0 {
		<-slow.entered
	}
	first := l.runID()
	answer := make(chan error)
	go func() {
		_, err := l.tell("hold", proxy.UpdateHold)
		answer <- err
	}()
	<-slow.entered // the handler is at work
	l.handOver(first)
	require.NoError(t, <-answer, "the caller has its answer")
	require.True(t, l.get().Status.Held, "and the next run its effect")
	l.deleted()
}

func TestAnUpdateIDHasOneEffectAcrossContinueAsNew(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	l.told("same", proxy.UpdateReplace)
	require.Eventually(t, func() bool { return l.backend.Calls(providers.OpCreate) == 2 }, soon, tick)
	l.running()
	l.handOver(l.runID())
	l.running()
	require.NotEmpty(t, l.told("same", proxy.UpdateReplace).Proxy.Metadata.UID)
	l.running()
	require.Equal(t, 2, l.backend.Calls(providers.OpCreate))
	l.deleted()
}

func TestAHundredUpdatesWithStartMakeOneProxy(t *testing.T) {
	l := newLab(t, quick())
	l.work()
	const callers = 100
	type outcome struct {
		uid     string
		created bool
		err     error
	}
	outcomes := make(chan outcome, callers)
	for i := range callers {
		go func() {
			p, created, err := l.Apply(t.Context(), l.wanted(spec), fleet.Request{ID: "apply-" + strconv.Itoa(i)})
			outcomes <- outcome{p.Metadata.UID, created, err}
		}()
	}
	uids, makers := map[string]bool{}, 0
	for range callers {
		o := <-outcomes
		require.NoError(t, o.err)
		uids[o.uid] = true
		if o.created {
			makers++
		}
	}
	require.Len(t, uids, 1)
	require.Equal(t, 1, makers, "one caller is told that it made the proxy")
	l.running()
	require.EqualValues(t, 1, l.get().Metadata.Generation)
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate))
	l.deleted()
}

func TestASignalThatDoesNotDecodeIsDropped(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	l.signal(proxy.SignalHealth, "garbage")
	l.signal(proxy.SignalHealth, proxy.HealthReport{Reason: v1.ReasonUnreachable})
	require.Eventually(t, func() bool {
		healthy := l.get().Status.Healthy
		return healthy != nil && !*healthy
	}, soon, tick)
	require.Equal(t, 1, l.taken())
	l.deleted()
}

// handOver forces the run to continue as new.
func (l *lab) handOver(run string) {
	l.t.Helper()
	l.signal(proxy.SignalHint, proxy.Hint{Renew: true})
	require.Eventually(l.t, func() bool { return l.runID() != run }, soon, tick)
}

const slowness = 3 * time.Second

// slowUpdates makes every update handler wait before it does anything.
type slowUpdates struct {
	interceptor.WorkerInterceptorBase
	entered chan struct{}
}

func (s *slowUpdates) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &slowInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, s.entered}
}

type slowInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	entered chan struct{}
}

func (i *slowInbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	if !workflow.IsReplaying(ctx) {
		i.entered <- struct{}{}
	}
	if err := workflow.Sleep(ctx, slowness); err != nil {
		return nil, err
	}
	return i.Next.ExecuteUpdate(ctx, in)
}

// A caller that says the same again and again brings no round; the run rolls over all
// the same before the server refuses more.
func TestUnchangedAppliesRollTheRunOver(t *testing.T) {
	const most = 2000 // updates of one run
	l := newLab(t, quick())
	l.born()
	first := l.runID()
	var wg sync.WaitGroup
	failed := make(chan error, most)
	for c := range 4 {
		wg.Go(func() {
			for i := range most/4 + 10 {
				asked := fleet.Request{ID: fmt.Sprintf("same-%d-%d", c, i)}
				if _, _, err := l.Apply(t.Context(), l.wanted(spec), asked); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	require.NotEqual(t, first, l.runID())
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate))
	l.deleted()
}

// A delete that was left as a signal is final, though an apply comes before it is taken:
// both are in one workflow task, and the SDK handles the update first.
func TestAnApplyDoesNotPassADeleteThatIsOnItsWay(t *testing.T) {
	l := newLab(t, quick())
	stop := l.work()
	l.apply("apply", spec)
	l.running()
	stop()
	l.signal(proxy.SignalDelete, proxy.DeleteInput{Reason: "test"})
	changed := spec
	changed.Port++
	answered := make(chan error, 1)
	go func() {
		_, err := l.ask("late", proxy.UpdateApply, proxy.ApplyInput{Spec: changed})
		answered <- err
	}()
	require.Eventually(t, func() bool {
		_, err := l.temporal.WorkflowService().PollWorkflowExecutionUpdate(t.Context(),
			&workflowservice.PollWorkflowExecutionUpdateRequest{
				Namespace: "default",
				UpdateRef: &update.UpdateRef{
					WorkflowExecution: &common.WorkflowExecution{WorkflowId: l.id()}, UpdateId: "late",
				},
				WaitPolicy: &update.WaitPolicy{LifecycleStage: enums.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED},
			})
		return err == nil
	}, soon, tick, "the server has the update")
	l.work()
	require.ErrorContains(t, <-answered, "is final: the proxy is being deleted")
	l.closed()
}
