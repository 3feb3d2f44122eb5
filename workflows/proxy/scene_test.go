package proxy

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdktest "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/testsuite/workflowenv"
)

// testUID is the run ID in the test environment, which has no first run ID.
const testUID = "default-test-run-id"

var spec = v1.ProxySpec{Provider: "fake", Port: 3128}

// scene is one proxy in the SDK's test environment, where time is skipped, on a
// backend that can be broken.
type scene struct {
	*sdktest.TestWorkflowEnvironment
	t       *testing.T
	backend *fake.Faults
	timing  Timing
	spec    v1.ProxySpec
	secrets string
	// configured is false while nobody knows the provider.
	configured bool
	times      *toldTimes
}

func newScene(t *testing.T, opts ...fake.Option) *scene {
	t.Helper()
	t.Parallel()
	times := &toldTimes{}
	sc := &scene{
		workflowenv.New(func(s *sdktest.WorkflowTestSuite) { s.SetMetricsHandler(times) }), t,
		fake.WithFaults(fake.New("fake", opts...)), DefaultTiming(), spec, t.TempDir(), true, times,
	}
	sc.timing.Outlast = 0 // real time, even where the rest is skipped
	sc.timing.Looks = math.MaxInt32
	sc.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: WorkflowID("default", "a"), TaskQueue: TaskQueue})
	sc.RegisterWorkflowWithOptions(func(ctx workflow.Context, in *Input) (Result, error) {
		return (&Workflow{Timing: sc.timing}).Run(ctx, in)
	}, workflow.RegisterOptions{Name: WorkflowType})
	sc.RegisterActivity(&activities.Instances{
		Lookup: func(name string) (providers.Provider, func(), bool) {
			return sc.backend, func() {}, sc.configured && name == "fake"
		},
		Installation: fake.DefaultInstallation, SecretsDir: sc.secrets,
	})
	return sc
}

// at does something a while after the start.
func (sc *scene) at(d time.Duration, do func()) { sc.RegisterDelayedCallback(do, d) }

// tell sends an update that must be accepted.
func (sc *scene) tell(name, id string, arg any) { sc.UpdateWorkflowNoRejection(name, id, sc.t, arg) }

func (sc *scene) deleteAt(d time.Duration) {
	sc.at(d, func() { sc.tell(UpdateDelete, "delete", Why{}) })
}

func (sc *scene) status() (status v1.ProxyStatus) {
	sc.t.Helper()
	v, err := sc.QueryWorkflow(QueryStatus)
	require.NoError(sc.t, err)
	require.NoError(sc.t, v.Get(&status))
	return status
}

// condition returns one condition of the status, which must be there.
func (sc *scene) condition(kind string) v1.Condition {
	sc.t.Helper()
	c, ok := sc.status().Condition(kind)
	require.True(sc.t, ok, kind)
	return c
}

func (sc *scene) timeline() (events []v1.Event) {
	sc.t.Helper()
	v, err := sc.QueryWorkflow(QueryTimeline)
	require.NoError(sc.t, err)
	require.NoError(sc.t, v.Get(&events))
	return events
}

// runs executes the proxy until it closes, and leaves nothing behind.
func (sc *scene) runs() {
	sc.t.Helper()
	sc.ExecuteWorkflow(WorkflowType, Input{Spec: sc.spec})
	require.True(sc.t, sc.IsWorkflowCompleted())
	require.NoError(sc.t, sc.GetWorkflowError())
	require.Empty(sc.t, sc.backend.Instances())
}

// rejected expects an update to be refused, naming the field, before it writes history.
func rejected(t *testing.T, field string) *sdktest.TestUpdateCallback {
	return &sdktest.TestUpdateCallback{
		OnReject:   func(err error) { require.ErrorContains(t, err, field) },
		OnAccept:   func() { t.Error("accepted") },
		OnComplete: func(any, error) {},
	}
}
