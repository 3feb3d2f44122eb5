package replay

import (
	"os"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// BenchmarkReplay is what a worker does for a task of a proxy that it does not keep, but
// for fetching the history.
func BenchmarkReplay(b *testing.B) {
	for _, name := range []string{"create-run-delete", "lost-instance"} {
		b.Run(name, func(b *testing.B) {
			f, err := os.Open("../../workflows/proxy/testdata/replay/" + name + ".v4.0.json")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				// Replaying changes the history; a copy of it stands for decoding what the server sent.
				h := proto.CloneOf(h)
				replayer := worker.NewWorkflowReplayer()
				workflows.Register(replayer, proxy.DefaultTiming())
				started := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
				err := replayer.ReplayWorkflowHistoryWithOptions(devserver.Quiet(), h, worker.ReplayWorkflowHistoryOptions{
					OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()},
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
