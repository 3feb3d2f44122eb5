package cost

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
)

const day = 24 * time.Hour

// counts are what the server has done for something.
type counts struct {
	Actions     float64 // that Temporal Cloud bills, by the rule of actionsOf and outside
	Counter     float64 // the same as the server counts it
	Events      float64 // written to histories
	Transitions float64 // of state
}

func (c counts) plus(other counts) counts {
	return counts{
		Actions: c.Actions + other.Actions, Counter: c.Counter + other.Counter,
		Events: c.Events + other.Events, Transitions: c.Transitions + other.Transitions,
	}
}

func (c counts) times(n float64) counts {
	return counts{Actions: n * c.Actions, Counter: n * c.Counter, Events: n * c.Events, Transitions: n * c.Transitions}
}

// source is one thing that costs: what was counted over some cycles of it, and how many
// of them a whole fleet has in a day of production.
type source struct {
	name    string
	counted counts
	cycles  float64 // that were counted
	perDay  float64
}

// perProxyDay brings what was counted of a source to a day, and to one of the proxies
// that share it. It is pure.
func (s source) perProxyDay(proxies int) (counts, error) {
	if s.cycles <= 0 || proxies <= 0 {
		return counts{}, fmt.Errorf("%s: %v cycles were counted, of %d proxies", s.name, s.cycles, proxies)
	}
	return s.counted.times(s.perDay / s.cycles / float64(proxies)), nil
}

// inADay is how often a day has an interval.
func inADay(interval time.Duration) float64 { return float64(day) / float64(interval) }

// scheduledRun is what a run that a schedule began counts beyond its start.
const scheduledRun = 2

// actionsOf counts the actions of one history as Temporal's documentation defines them
// (docs.temporal.io/cloud/actions): each start of a run, two more where a schedule began
// it; each activity, timer, signal, update, upsert and change of a memo; and all markers of
// one workflow task together. What a workflow writes down as its version is no upsert. Of
// a scheduler nothing counts, since each of its runs does. It is pure. What no history
// has is counted by outside.
func actionsOf(events []*history.HistoryEvent, scheduler bool) (n float64) {
	if scheduler {
		return 0
	}
	marked := map[int64]bool{} // workflow tasks
	for _, e := range events {
		switch e.GetEventType() { //nolint:exhaustive // no other event is an action
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			n++
			fields := e.GetWorkflowExecutionStartedEventAttributes().GetSearchAttributes().GetIndexedFields()
			if _, scheduled := fields["TemporalScheduledById"]; scheduled {
				n += scheduledRun
			}
		case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			fields := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
			if _, version := fields["TemporalChangeVersion"]; !version {
				n++
			}
		case enums.EVENT_TYPE_MARKER_RECORDED:
			marked[e.GetMarkerRecordedEventAttributes().GetWorkflowTaskCompletedEventId()] = true
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enums.EVENT_TYPE_TIMER_STARTED,
			enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
			enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
			n++
		}
	}
	return n + float64(len(marked))
}

// The words of the server's counter "action", by which it tells what was done.
const (
	actionRetry     = "activity_retry"
	actionHeartbeat = "grpc_RecordActivityTaskHeartbeat"
	actionQuery     = "grpc_QueryWorkflow"
	actionSignal    = "grpc_SignalWorkflowExecution"
	actionActivity  = "command_ScheduleActivityTask"
)

// byBench are the actions of the bench itself.
func byBench() []string {
	return []string{"grpc_CreateSchedule", "grpc_PatchSchedule", "grpc_DeleteSchedule"}
}

// outside counts the actions of a counter that no history has.
func outside(counter map[string]float64) float64 {
	return counter[actionRetry] + counter[actionHeartbeat] + counter[actionQuery]
}

// all counts the actions of a counter, without those of the bench.
func all(counter map[string]float64) (n float64) {
	for what, times := range counter {
		if !slices.Contains(byBench(), what) {
			n += times
		}
	}
	return n
}
