package create

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// useExisting lets an update go to what is there.
const useExisting = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING

// changeVersions is what the SDK writes for GetVersion, beside what is ours.
const changeVersions = "TemporalChangeVersion"

// steps are what a workflow does that a server has to write down.
type steps struct {
	Activities, Memos, Attributes int // activities that ended, memos and search attributes that were set
}

// stepsOf counts the steps of a history up to the delete, and those from there to the
// end. It is pure.
func stepsOf(events []*history.HistoryEvent) (create, remove steps) {
	updates, now := 0, &create
	for _, e := range events {
		switch e.GetEventType() { //nolint:exhaustive // the others are no steps
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
			if updates++; updates == 2 {
				now = &remove
			}
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			now.Activities++
		case enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
			now.Memos++
		case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			fields := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
			if _, sdk := fields[changeVersions]; !sdk {
				now.Attributes++
			}
		}
	}
	return create, remove
}

// check returns an error unless a twin does as much as a proxy: a baseline that does less
// makes ours look worse than it is, and one that does more better.
func check(kind string, ours, twin steps) error {
	if ours == twin {
		return nil
	}
	return fmt.Errorf("%s: the twin has %+v, and a proxy has %+v: bring twin.go up to date", kind, twin, ours)
}

// read returns the history of a workflow.
func read(ctx context.Context, temporal client.Client, id string) (events []*history.HistoryEvent, err error) {
	const wait = false
	all := temporal.GetWorkflowHistory(ctx, id, "", wait, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for all.HasNext() {
		e, err := all.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return slices.Clip(events), nil
}
