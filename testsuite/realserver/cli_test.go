package realserver

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/workflows/proxy"
)

func TestTheCommandLineIsEnough(t *testing.T) {
	l := newLab(t, quick())
	l.work()
	l.cli("start", "--type", proxy.WorkflowType, "--task-queue", l.queue,
		"--input", `{"spec":{"provider":"fake","port":3128,"placement":{"zone":"a"}}}`)
	l.running()
	require.Equal(t, "a", l.get().Spec.Placement.Zone)
	l.cli("update", "execute", "--name", proxy.UpdateHold)
	require.True(t, l.get().Status.Held)
	l.cli("signal", "--name", proxy.SignalDelete)
	l.closed()
}

func TestTheCommandLineCancels(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	l.cli("cancel")
	l.closed()
}

func TestTheCommandLineIsToldWhatIsWrong(t *testing.T) {
	for name, in := range map[string]struct{ input, field string }{
		"no port":      {`{"spec":{"provider":"fake"}}`, "spec.port"},
		"a wrong type": {`{"spec":{"provider":"fake","port":"x"}}`, "port"},
		"no object":    {`[]`, "array"},
		"a typo":       {`{"spec":{"provider":"fake","port":1,"placment":{}}}`, "placment"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, quick())
			l.work()
			l.cli("start", "--type", proxy.WorkflowType, "--task-queue", l.queue, "--input", in.input)
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			err := l.temporal.GetWorkflow(ctx, l.id(), "").Get(ctx, nil)
			app, ok := errors.AsType[*temporal.ApplicationError](err)
			require.True(t, ok, err)
			require.Contains(t, app.Message(), in.field)
			require.True(t, app.NonRetryable())
		})
	}
}

// cli runs the Temporal command line with nothing of ours.
func (l *lab) cli(args ...string) {
	l.t.Helper()
	args = append([]string{"workflow"}, args...)
	args = append(args, "--workflow-id", l.id(), "--address", server.Address)
	out, err := exec.CommandContext(l.t.Context(), server.CLI, args...).CombinedOutput()
	require.NoError(l.t, err, string(out))
}
