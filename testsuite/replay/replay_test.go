package replay

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/internal/tracing"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const advice = "a running workflow of the release that recorded this would be stuck: put the change behind a new " +
	"version in versions.go; docs/runbooks/upgrade.md says when a history may be recorded anew"

func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../workflows/*/testdata/replay/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files, "there are recorded histories")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			require.NoError(t, replay(t, read(t, file)), advice)
			require.NoError(t, replay(t, read(t, file), traced(t)...), "tracing changes no command")
			direct := (&proxy.Workflow{Timing: proxy.DefaultTiming()}).Direct()
			require.NoError(t, replay(t, read(t, file), append(traced(t), direct)...), "nor does what calls a proxy directly")
		})
	}
}

// A replayer that takes anything would prove nothing.
func TestAHistoryOfOtherCommandsDoesNotReplay(t *testing.T) {
	t.Parallel()
	h := read(t, "../../workflows/proxy/testdata/replay/create-run-delete.0.json")
	for _, ev := range h.Events {
		if a := ev.GetActivityTaskScheduledEventAttributes(); a != nil {
			a.ActivityType.Name = "SomethingElse"
		}
	}
	require.ErrorContains(t, replay(t, h), "SomethingElse")
	direct := (&proxy.Workflow{Timing: proxy.DefaultTiming()}).Direct()
	require.ErrorContains(t, replay(t, h, direct), "SomethingElse")
}

func read(t *testing.T, file string) *history.History {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

// traced is what a worker has around its workflows where tracing is on.
func traced(t *testing.T) []interceptor.WorkerInterceptor {
	t.Helper()
	traces, err := tracing.New(t.Context(), "test")
	require.NoError(t, err)
	asks, does, err := traces.Interceptors(tracing.TemporalOptions{})
	require.NoError(t, err)
	return []interceptor.WorkerInterceptor{asks.(interceptor.WorkerInterceptor), does}
}

// replay uses the ID that the history has: it is part of the input.
func replay(t *testing.T, h *history.History, around ...interceptor.WorkerInterceptor) error {
	t.Helper()
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: around})
	require.NoError(t, err)
	workflows.Register(r, proxy.DefaultTiming())
	started := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
	return r.ReplayWorkflowHistoryWithOptions(devserver.Quiet(), h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()},
	})
}
