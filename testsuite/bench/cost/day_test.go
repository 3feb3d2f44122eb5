package cost

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

func TestWhatWasCountedIsBroughtToADay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		of      source
		proxies int
		want    counts
	}{
		"a sweep every two minutes is shared by all": {
			source{
				counted: counts{Actions: 50, Counter: 60, Events: 270, Transitions: 100},
				cycles:  10, perDay: inADay(2 * time.Minute),
			},
			1000,
			counts{Actions: 3.6, Counter: 4.32, Events: 19.44, Transitions: 7.2},
		},
		"a look every hour is each proxy's own": {
			source{counted: counts{Actions: 280, Events: 60}, cycles: 260, perDay: 20 * inADay(time.Hour)},
			20,
			counts{Actions: 24 * 280.0 / 260, Events: 24 * 60.0 / 260},
		},
		"a new run every week": {
			source{counted: counts{Actions: 40}, cycles: 10, perDay: 10 * inADay(7*day)}, 10, counts{Actions: 4.0 / 7},
		},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.of.perProxyDay(c.proxies)
			require.NoError(t, err)
			near(t, c.want, got)
		})
	}
	_, err := source{name: "watch", counted: counts{Actions: 1}, perDay: 24}.perProxyDay(10)
	require.EqualError(t, err, "watch: 0 cycles were counted, of 10 proxies")
	_, err = source{name: "watch", cycles: 1}.perProxyDay(0)
	require.EqualError(t, err, "watch: 1 cycles were counted, of 0 proxies")
}

func near(t *testing.T, want, got counts) {
	t.Helper()
	const enough = 1e-9
	require.InDelta(t, want.Actions, got.Actions, enough)
	require.InDelta(t, want.Counter, got.Counter, enough)
	require.InDelta(t, want.Events, got.Events, enough)
	require.InDelta(t, want.Transitions, got.Transitions, enough)
}

func TestWhichEventsAreActions(t *testing.T) {
	t.Parallel()
	started := func(attribute string) *history.HistoryEvent {
		return &history.HistoryEvent{
			EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &history.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &history.WorkflowExecutionStartedEventAttributes{
					SearchAttributes: found(attribute),
				},
			},
		}
	}
	upsert := func(attribute string) *history.HistoryEvent {
		return &history.HistoryEvent{
			EventType: enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
			Attributes: &history.HistoryEvent_UpsertWorkflowSearchAttributesEventAttributes{
				UpsertWorkflowSearchAttributesEventAttributes: &history.UpsertWorkflowSearchAttributesEventAttributes{
					SearchAttributes: found(attribute),
				},
			},
		}
	}
	marker := func(task int64) *history.HistoryEvent {
		return &history.HistoryEvent{
			EventType: enums.EVENT_TYPE_MARKER_RECORDED,
			Attributes: &history.HistoryEvent_MarkerRecordedEventAttributes{
				MarkerRecordedEventAttributes: &history.MarkerRecordedEventAttributes{WorkflowTaskCompletedEventId: task},
			},
		}
	}
	plain := func(kinds ...enums.EventType) (all []*history.HistoryEvent) {
		for _, kind := range kinds {
			all = append(all, &history.HistoryEvent{EventType: kind})
		}
		return all
	}
	tests := map[string]struct {
		events    []*history.HistoryEvent
		scheduler bool
		want      float64
	}{
		"a run that somebody started":     {[]*history.HistoryEvent{started("ProxyPhase")}, false, 1},
		"a run that a schedule began":     {[]*history.HistoryEvent{started("TemporalScheduledById")}, false, 3},
		"nothing of the scheduler itself": {[]*history.HistoryEvent{started(""), marker(4)}, true, 0},
		"an upsert":                       {[]*history.HistoryEvent{upsert("ProxyPhase")}, false, 1},
		"the version of a run":            {[]*history.HistoryEvent{upsert("TemporalChangeVersion")}, false, 0},
		"markers of one workflow task":    {[]*history.HistoryEvent{marker(4), marker(4)}, false, 1},
		"markers of two workflow tasks":   {[]*history.HistoryEvent{marker(4), marker(9)}, false, 2},
		"what a workflow asks for": {plain(
			enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enums.EVENT_TYPE_TIMER_STARTED,
			enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
			enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED), false, 5},
		"not what comes of it": {plain(
			enums.EVENT_TYPE_ACTIVITY_TASK_STARTED, enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, enums.EVENT_TYPE_TIMER_FIRED,
			enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enums.EVENT_TYPE_WORKFLOW_TASK_STARTED,
			enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
			enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW), false, 0},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.InDelta(t, c.want, actionsOf(c.events, c.scheduler), 0)
		})
	}
}

func found(attribute string) *common.SearchAttributes {
	if attribute == "" {
		return nil
	}
	return &common.SearchAttributes{IndexedFields: map[string]*common.Payload{attribute: {}}}
}

func TestWhatTheServersCounterAdds(t *testing.T) {
	t.Parallel()
	counter := map[string]float64{
		actionRetry: 7, actionHeartbeat: 2, actionQuery: 1, "command_StartTimer": 5,
		"grpc_PatchSchedule": 100, "grpc_CreateSchedule": 50,
	}
	require.InDelta(t, 10, outside(counter), 0, "what no history has")
	require.InDelta(t, 15, all(counter), 0, "without what the bench itself did")
}

func TestTheCounterIsReadByType(t *testing.T) {
	t.Parallel()
	body := `# TYPE action counter
action{action_type="command_StartTimer",namespace="default",operation="a"} 3
action{action_type="command_StartTimer",namespace="default",operation="b"} 2
action{action_type="grpc_StartWorkflowExecution",namespace="temporal_system",operation="a"} 9
other{namespace="default"} 1
`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	got, err := (&meter{port: port}).actions(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"command_StartTimer": 5}, got)
	body = "other{namespace=\"default\"} 1\n"
	_, err = (&meter{port: port}).actions(t.Context())
	require.ErrorContains(t, err, `no counter "action"`, "a server that counts otherwise is no fleet that costs nothing")
}

func TestTheSourcesAreSummed(t *testing.T) {
	t.Parallel()
	got, err := samplesOf([]source{
		{"watch", counts{Actions: 26, Counter: 26, Events: 6, Transitions: 30}, 24, 240},
		{"health-round", counts{Actions: 70, Counter: 80, Events: 300, Transitions: 100}, 10, 1440},
	}, 10, counts{Actions: 4320, Events: 23760, Transitions: 15000})
	require.NoError(t, err)
	require.InDelta(t, 26+1008, got["actions"].Value, 1e-9)
	require.InDelta(t, 4320, got["actions"].Baseline, 1e-9)
	require.InDelta(t, 6+4320, got["events"].Value, 1e-9)
	require.InDelta(t, 30+1440, got["transitions"].Value, 1e-9)
	require.InDelta(t, 4320, got["actions of the twin"].Value, 1e-9)
	require.InDelta(t, 26+1008, got["actions of the twin"].Baseline, 1e-9)
	require.InDelta(t, 26+1152, got["actions, the server's counter"].Value, 1e-9)
	require.InDelta(t, 1008, got["actions: health-round"].Value, 1e-9)
	require.InDelta(t, 6, got["events: watch"].Value, 1e-9)
	_, err = samplesOf([]source{{name: "watch"}}, 10, counts{})
	require.Error(t, err, "what was not counted costs nothing in no sum")
}

func TestEverySourceHasItsFigures(t *testing.T) {
	t.Parallel()
	var all []source
	for _, name := range sources() {
		all = append(all, source{name: name, cycles: 1})
	}
	samples, err := samplesOf(all, 1, counts{})
	require.NoError(t, err)
	require.Len(t, samples, len(Part().Figures))
	for _, f := range Part().Figures {
		require.Contains(t, samples, f.Name)
	}
}

func TestTheWaitsAreShorterInProportion(t *testing.T) {
	t.Parallel()
	production := proxy.DefaultTiming()
	for _, size := range Part().Sizes {
		short := timing(size)
		require.Less(t, short.Steady.Poll, time.Minute)
		require.Equal(t, production.Steady.Lease/production.Steady.Poll, short.Steady.Lease/short.Steady.Poll)
		require.Equal(t, production.Steady.Max/production.Steady.Poll, short.Steady.Max/short.Steady.Poll)
		for _, s := range schedules() {
			require.Less(t, every(s, size), s.Every)
		}
	}
	require.Contains(t, schedules(), fleet.ProviderCheck(), "whatever a fleet runs by itself costs")
}

func TestNoTwoTroublesAreEquallyLongBeforeASweep(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 7, 20} {
		phases := map[time.Duration]bool{}
		for i := range n {
			at := moment(i, n, 2*time.Minute)
			require.Less(t, at, 2*2*time.Minute+time.Minute)
			phases[at%(2*time.Minute)] = true
		}
		require.Len(t, phases, n)
	}
}
