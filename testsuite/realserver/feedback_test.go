package realserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	apifeedback "github.com/egressfleet/egressfleet/api/feedback"
	apiserver "github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/worker/hands"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/feedback"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// feedbackLab is a lab with an installation and a provider of its own, some proxies and
// an API in front of them.
type feedbackLab struct {
	*lab
	fleet *fleet.Client
	names []string
}

func newFeedbackLab(t *testing.T, proxies int) *feedbackLab {
	t.Helper()
	l := newLab(t, quick())
	l.knows = func(provider string) bool { return provider == l.name }
	f := &feedbackLab{lab: l, fleet: fleet.New(l.temporal, l.name, fleet.WithTaskQueue(l.queue))}
	l.hands = []any{&activities.Feedback{Fleet: hands.Judged{Client: f.fleet}}}
	l.work()
	for i := range proxies {
		p := l.wanted(v1.ProxySpec{Provider: l.name, Port: 3128 + i})
		p.Metadata.Name = fmt.Sprintf("%s-%d", l.name, i)
		_, _, err := f.fleet.Apply(t.Context(), p, fleet.Request{ID: "apply"})
		require.NoError(t, err)
		f.names = append(f.names, p.Metadata.Name)
	}
	require.Eventually(t, func() bool { return f.usable() == proxies }, soon, tick)
	return f
}

// usable counts the proxies that clients may use now, as each workflow shows itself.
func (f *feedbackLab) usable() (n int) {
	for _, name := range f.names {
		p, err := f.fleet.Get(f.t.Context(), "default", name)
		if _, ok := v1.EndpointOf(p); ok && err == nil {
			n++
		}
	}
	return n
}

// serves runs a process of the API, which is ready, and returns its address and its end.
func (f *feedbackLab) serves() (address string, stop func()) {
	f.t.Helper()
	policy := apifeedback.DefaultPolicy()
	policy.Replace = 2
	s := apiserver.New(f.fleet, apiserver.Options{Feedback: policy})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener) }()
	address = "http://" + listener.Addr().String()
	require.Eventually(f.t, func() bool { return len(f.listed(address, "")) == f.usable() }, soon, tick)
	return address, func() {
		cancel()
		require.NoError(f.t, <-ended)
	}
}

// listed are the names that a process hands out of this lab's provider; nil for none.
func (f *feedbackLab) listed(address, domain string) (names []string) {
	answer, err := http.Get(address + "/v1/discovery?provider=" + f.name + "&for=" + domain)
	require.NoError(f.t, err)
	defer func() { _ = answer.Body.Close() }()
	var list v1.Discovery
	if answer.StatusCode == http.StatusOK {
		require.NoError(f.t, json.NewDecoder(answer.Body).Decode(&list))
	}
	for _, e := range list.Proxies {
		names = append(names, e.Name)
	}
	return names
}

func (f *feedbackLab) report(address, name, domain string) (r v1.Reported) {
	f.t.Helper()
	body := fmt.Sprintf(`{"proxy": "default/%s", "domain": %q, "kind": "banned"}`, name, domain)
	answer, err := http.Post(address+"/v1/discovery/report?provider="+f.name, "application/json", strings.NewReader(body))
	require.NoError(f.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(f.t, err)
	require.Equal(f.t, http.StatusOK, answer.StatusCode, string(text))
	require.NoError(f.t, json.Unmarshal(text, &r))
	return r
}

// memory is the history of the workflow that remembers.
func (f *feedbackLab) memory() *history.History {
	h := &history.History{}
	it := f.temporal.GetWorkflowHistory(f.t.Context(), feedback.WorkflowID(f.name), "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		ev, err := it.Next()
		require.NoError(f.t, err)
		h.Events = append(h.Events, ev)
	}
	return h
}

// verdicts are what was done and refused so far, once it is.
func (f *feedbackLab) verdicts() (all []activities.FeedbackVerdict) {
	orders := map[int64]activities.FeedbackOrder{}
	for _, ev := range f.memory().Events {
		if a := ev.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "ActOnFeedback" {
			var order activities.FeedbackOrder
			require.NoError(f.t, converter.GetDefaultDataConverter().FromPayloads(a.Input, &order))
			orders[ev.EventId] = order
		}
		if a := ev.GetActivityTaskCompletedEventAttributes(); a != nil {
			all = append(all, orders[a.ScheduledEventId].Verdicts...)
		}
	}
	return all
}

func TestAWaveOfReportsTakesDownNoMoreThanTheFloorAllows(t *testing.T) {
	f := newFeedbackLab(t, 5)
	address, stop := f.serves()
	for _, name := range f.names {
		for i := range 3 {
			r := f.report(address, name, fmt.Sprintf("site-%d.example", i))
			require.True(t, r.Counted)
			if r.Proxy != nil {
				require.NotEqual(t, name, r.Proxy.Name)
			}
		}
	}
	require.Empty(t, f.listed(address, "www.site-0.example"), "every one is banned there")
	require.Len(t, f.listed(address, "other.example"), f.usable())
	stop() // which sends what is left
	require.Eventually(t, func() bool { return len(f.verdicts()) > 0 }, soon, tick)
	require.GreaterOrEqual(t, f.usable(), 4, "80 percent of five")
	done := f.replaced()
	require.Len(t, done, 1)
	for _, v := range f.verdicts() {
		require.Equal(t, v.Name != done[0], v.Refused == activities.RefusedFloor, v)
	}
	require.Eventually(t, func() bool { return f.usable() == 5 }, soon, tick)

	again, stop := f.serves()
	defer stop()
	require.Len(t, f.listed(again, "other.example"), 5)
	// What was replaced may have another address, or got its own again.
	require.Subset(t, done, f.listed(again, "site-1.example"), "what another process was told is not forgotten")
	for _, name := range f.names {
		_, err := f.fleet.Delete(t.Context(), "default", name, "test", fleet.Request{})
		require.NoError(t, err)
		require.NoError(t, f.fleet.WaitGone(t.Context(), "default", name))
	}
	require.NoError(t, f.temporal.CancelWorkflow(t.Context(), feedback.WorkflowID(f.name), ""))
	require.Error(t, f.temporal.GetWorkflow(t.Context(), feedback.WorkflowID(f.name), "").Get(t.Context(), nil))
	f.remembers()
}

func TestAHoldThatReportsLeadToKeepsOffWhatIsNotItsOwn(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	judged, is := hands.Judged{Client: l.Client}, l.get()
	of := activities.Accused{
		Provider: "fake", Namespace: "default", Name: l.name, UID: is.Metadata.UID, MadeAt: is.Status.InstanceCreatedAt,
	}
	slow := v1.Hold{Reason: "feedback: slow", For: "1h"}
	before := of
	before.MadeAt = before.MadeAt.Add(-1)
	asked, err := judged.Hold(t.Context(), before, slow, "one")
	require.NoError(t, err)
	require.False(t, asked, "another instance")
	require.False(t, l.get().Status.Held)
	l.update(proxy.UpdateHold, proxy.HoldInput{Reason: "Billing"})
	asked, err = judged.Hold(t.Context(), of, slow, "two")
	require.NoError(t, err)
	require.False(t, asked, "somebody holds it")
	held, _ := l.get().Status.Condition(v1.ConditionHeld)
	require.Equal(t, "Billing", held.Reason)
	require.Empty(t, held.Message, "and its hold has no end")
	l.update(proxy.UpdateResume, proxy.Why{})
	asked, err = judged.Hold(t.Context(), of, slow, "three")
	require.NoError(t, err)
	require.True(t, asked)
	held, _ = l.get().Status.Condition(v1.ConditionHeld)
	require.Contains(t, held.Message, "feedback: slow; until ")
	asked, err = judged.Replace(t.Context(), before, "feedback", "four")
	require.NoError(t, err)
	require.False(t, asked)
	l.deleted()
	asked, err = judged.Hold(t.Context(), of, slow, "five")
	require.NoError(t, err)
	require.False(t, asked, "it is gone")
}

// replaced are the proxies whose timeline says that clients' reports replaced them.
func (f *feedbackLab) replaced() (names []string) {
	for _, name := range f.names {
		events, err := f.fleet.Timeline(f.t.Context(), "default", name)
		require.NoError(f.t, err)
		for _, e := range events {
			if e.Reason == "ReplaceRequested" {
				require.Contains(f.t, e.Detail, "feedback: banned or asked for a captcha by 3 domains")
				names = append(names, name)
			}
		}
	}
	return names
}

// remembers proves the history deterministic, and keeps it if asked to.
func (f *feedbackLab) remembers() {
	f.t.Helper()
	h := f.memory()
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{})
	require.NoError(f.t, err)
	workflows.Register(r, proxy.DefaultTiming())
	started := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
	require.NoError(f.t, r.ReplayWorkflowHistoryWithOptions(devserver.Quiet(), h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{
			ID: feedback.WorkflowID(f.name), RunID: started.GetOriginalExecutionRunId(),
		},
	}))
	f.keepIn("feedback", 0, h)
}
