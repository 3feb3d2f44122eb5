package create

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
)

func event(of enums.EventType) *history.HistoryEvent { return &history.HistoryEvent{EventType: of} }

// setting is a search attribute that was set.
func setting(name string) *history.HistoryEvent {
	fields := map[string]*common.Payload{name: {}}
	return &history.HistoryEvent{
		EventType: enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
		Attributes: &history.HistoryEvent_UpsertWorkflowSearchAttributesEventAttributes{
			UpsertWorkflowSearchAttributesEventAttributes: &history.UpsertWorkflowSearchAttributesEventAttributes{
				SearchAttributes: &common.SearchAttributes{IndexedFields: fields},
			},
		},
	}
}

func TestTheStepsOfAHistoryAreThoseBeforeTheDeleteAndAfterIt(t *testing.T) {
	t.Parallel()
	accepted := event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)
	ended := event(enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
	memo := event(enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED)
	create, remove := stepsOf([]*history.HistoryEvent{
		event(enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED), setting(changeVersions), accepted, memo, setting("ProxyPhase"),
		event(enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED), ended, ended, memo,
		accepted, memo, ended, event(enums.EVENT_TYPE_ACTIVITY_TASK_CANCELED), setting("ProxyPhase"), setting("ProxyReason"),
	})
	require.Equal(t, steps{Activities: 2, Memos: 2, Attributes: 1}, create)
	require.Equal(t, steps{Activities: 1, Memos: 1, Attributes: 2}, remove)
}

func TestATwinThatDoesNotDoAsMuchIsNoBaseline(t *testing.T) {
	t.Parallel()
	ours := steps{Activities: 2, Memos: 3, Attributes: 3}
	require.NoError(t, check("create", ours, ours))
	for name, twin := range map[string]steps{
		"an activity less": {1, 3, 3}, "a memo more": {2, 4, 3}, "an attribute less": {2, 3, 2},
	} {
		require.ErrorContains(t, check("create", ours, twin), "bring twin.go up to date", name)
	}
}

func TestTheProcessesThatAreNamed(t *testing.T) {
	t.Parallel()
	got, err := parseProcesses("server=12,13 database=14")
	require.NoError(t, err)
	require.Equal(t, processes{ofServer: {12, 13}, ofDatabase: {14}}, got)
	none, err := parseProcesses("")
	require.NoError(t, err)
	require.Empty(t, none)
	for _, bad := range []string{"12", "cache=1", "server=", "server=a"} {
		_, err := parseProcesses(bad)
		require.ErrorContains(t, err, EnvProcesses, bad)
	}
}
