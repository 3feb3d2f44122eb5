package feedback

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	sdktest "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/workflowenv"
)

// scene is one run in the SDK's test environment, with ten proxies that are all usable.
type scene struct {
	*sdktest.TestWorkflowEnvironment
	t      *testing.T
	looks  []activities.FeedbackLook
	orders []activities.FeedbackOrder
	fail   error // of a look
	usable int
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	s := &scene{TestWorkflowEnvironment: workflowenv.New(), t: t, usable: 10}
	s.SetStartTime(birth)
	s.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: WorkflowID("test"), TaskQueue: "q"})
	s.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: WorkflowType})
	s.RegisterActivityWithOptions(s.look, activity.RegisterOptions{Name: "LookAtPool"})
	s.RegisterActivityWithOptions(s.act, activity.RegisterOptions{Name: "ActOnFeedback"})
	return s
}

func (s *scene) look(_ context.Context, in activities.FeedbackLook) (out activities.FeedbackStandings, err error) {
	s.looks = append(s.looks, in)
	out.Providers = map[string]activities.Standing{"gcp": {Total: 10, Usable: s.usable - len(in.Leaving)}}
	for _, a := range in.Accused {
		out.There = append(out.There, a.Key())
	}
	return out, s.fail
}

func (s *scene) act(_ context.Context, in activities.FeedbackOrder) (activities.FeedbackDone, error) {
	s.orders = append(s.orders, in)
	return activities.FeedbackDone{}, nil
}

// hears sends a batch after a while.
func (s *scene) hears(after time.Duration, reports ...Report) {
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(SignalReports, Batch{policy, reports}) }, after)
}

// runs until a time, and returns what it ended with.
func (s *scene) runs(until time.Duration) error {
	s.RegisterDelayedCallback(s.CancelWorkflow, until)
	s.ExecuteWorkflow(WorkflowType, Input{})
	require.True(s.t, s.IsWorkflowCompleted())
	return s.GetWorkflowError()
}

func (s *scene) bans(known int64) (b Snapshot) {
	answer, err := s.QueryWorkflow(QueryBans, known)
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Get(&b))
	return b
}

func (s *scene) done() (names []string) {
	for _, o := range s.orders {
		for _, v := range o.Verdicts {
			if v.Refused == "" {
				names = append(names, v.Do+" "+v.Name)
			} else {
				names = append(names, v.Refused+" "+v.Name)
			}
		}
	}
	return names
}

func TestAThresholdIsActedUponAtOnceAndOnce(t *testing.T) {
	s := newScene(t)
	s.hears(time.Second, many(2, "a", v1.ReportBanned, birth)...)
	s.hears(2*time.Second, many(3, "a", v1.ReportBanned, birth)...)
	s.hears(3*time.Second, many(9, "a", v1.ReportBanned, birth)...) // it cools down
	require.True(t, temporal.IsCanceledError(s.runs(10*time.Minute)))
	require.Equal(t, []string{"replace a"}, s.done())
	require.Len(t, s.looks, 1)
	require.Contains(t, s.orders[0].Request, "feedback-")
	require.Contains(t, s.orders[0].Verdicts[0].Reason, "by 3 domains")
}

func TestLooksAreRareAndARefusalIsToldOnce(t *testing.T) {
	s := newScene(t)
	s.usable = 8 // of ten, which is the floor
	for i := range 60 {
		s.hears(time.Duration(i+1)*time.Second, many(3, "a", v1.ReportBanned, birth.Add(time.Duration(i)*time.Second))...)
	}
	require.Error(t, s.runs(2*time.Minute))
	require.Equal(t, []string{"floor a"}, s.done())
	require.LessOrEqual(t, len(s.looks), 5)
	require.GreaterOrEqual(t, len(s.looks), 3)
}

func TestWhatLeftCountsAsGoneWhateverIsListed(t *testing.T) {
	s := newScene(t)
	var wave []Report
	for i := range 10 {
		wave = append(wave, many(3, fmt.Sprintf("p%d", i), v1.ReportBanned, birth)...)
	}
	s.hears(time.Second, wave...)
	require.Error(t, s.runs(5*time.Minute))
	require.Equal(t, 2, len(s.done())-8, "two of ten; and eight were refused once")
	require.Equal(t, []string{"default/p0", "default/p1"}, s.looks[1].Leaving)
}

func TestAFleetThatCannotBeAskedChangesNothing(t *testing.T) {
	s := newScene(t)
	s.fail = temporal.NewNonRetryableApplicationError("away", "Permanent", nil)
	s.hears(time.Second, many(3, "a", v1.ReportBanned, birth)...)
	s.RegisterDelayedCallback(func() { s.fail = nil }, time.Minute)
	require.Error(t, s.runs(5*time.Minute))
	require.Equal(t, []string{"replace a"}, s.done())
	require.Greater(t, len(s.looks), 1)
}

func TestABudgetIsSpentAlsoWhereNobodyKnowsWhatBecameOfIt(t *testing.T) {
	s := newScene(t)
	s.OnActivity("ActOnFeedback", mock.Anything, mock.Anything).Return(activities.FeedbackDone{},
		temporal.NewNonRetryableApplicationError("away", "Permanent", errors.New("lost")))
	s.hears(time.Second, append(many(3, "a", "banned", birth), many(3, "b", "banned", birth)...)...)
	s.hears(time.Minute, many(3, "c", "banned", birth)...)
	require.Error(t, s.runs(3*time.Minute))
	require.Len(t, s.looks, 5)
	require.Len(t, s.looks[len(s.looks)-1].Accused, 1, "only c is looked at still: the budget is two")
}

func TestBansAreToldByRevision(t *testing.T) {
	s := newScene(t)
	s.hears(time.Second, report("a", "example.com", v1.ReportBanned, birth))
	s.RegisterDelayedCallback(func() {
		b := s.bans(0)
		require.Equal(t, map[string]map[string]int64{"example.com": {"203.0.113.7": birth.Add(time.Hour).Unix()}}, b.Bans)
		require.Equal(t, Snapshot{Revision: b.Revision}, s.bans(b.Revision))
		require.NotEmpty(t, s.bans(b.Revision+1).Bans)
	}, time.Minute)
	require.Error(t, s.runs(2*time.Minute))
}

func TestTheStateCrossesIntoTheNextRun(t *testing.T) {
	s := newScene(t)
	s.hears(time.Second, append(many(3, "a", v1.ReportBanned, birth), report("b", "x.example", "slow", birth))...)
	s.hears(time.Minute, report("c", "last.example", "banned", birth))
	s.RegisterDelayedCallback(func() {
		s.SetContinueAsNewSuggested(true)
		s.SignalWorkflow(SignalReports, Batch{Policy: policy}) // which brings a task
	}, time.Minute+time.Second)
	err := s.runs(time.Hour)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	var in Input
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	require.Contains(t, in.State.Bans, "last.example")
	require.Contains(t, in.State.Bans, "site-0.example")
	require.Contains(t, in.State.Cases, "default/b")
	require.Len(t, in.State.Acts, 1)

	again := &scene{t: t, usable: 10}
	again.TestWorkflowEnvironment = workflowenv.New()
	again.SetStartTime(birth.Add(time.Minute))
	again.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: WorkflowID("test"), TaskQueue: "q"})
	again.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: WorkflowType})
	again.RegisterActivityWithOptions(again.look, activity.RegisterOptions{Name: "LookAtPool"})
	again.RegisterActivityWithOptions(again.act, activity.RegisterOptions{Name: "ActOnFeedback"})
	again.hears(time.Second, many(9, "a", v1.ReportBanned, birth)...)
	again.RegisterDelayedCallback(func() { require.Contains(t, again.bans(0).Bans, "last.example") }, 2*time.Second)
	again.RegisterDelayedCallback(again.CancelWorkflow, time.Minute)
	again.ExecuteWorkflow(WorkflowType, in)
	require.Empty(t, again.done(), "it cools down in this run, too")
}

func TestARunEndsAfterADay(t *testing.T) {
	s := newScene(t)
	s.hears(maxRunAge+time.Minute, report("a", "example.com", v1.ReportBanned, birth.Add(maxRunAge)))
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.runs(2*maxRunAge), &next)
}

func TestAnIDOfAnotherShapeFailsAtOnce(t *testing.T) {
	s := newScene(t)
	s.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "feedback/No_Label", TaskQueue: "q"})
	require.ErrorContains(t, s.runs(time.Minute), `workflow ID: "feedback/No_Label" is not feedback/<installation>`)
}
