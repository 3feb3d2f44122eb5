// Package realserver proves the workflows on a real Temporal server, with a backend
// that can be broken. Start reading at lab.
package realserver

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	soon = time.Minute // generous: the machine may be busy
	tick = 20 * time.Millisecond
)

var (
	spec   = v1.ProxySpec{Provider: "fake", Port: 3128}
	server *devserver.Server
	record = flag.Bool("record", false, "write the histories of tests that replay them to testdata")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		var err error
		if server, err = devserver.Start(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = server.Stop() }()
		return m.Run()
	}())
}

// lab is one task queue on the server with one proxy on a backend of its own.
type lab struct {
	*fleet.Client
	t        *testing.T
	temporal client.Client
	timing   proxy.Timing
	backend  *fake.Faults
	name     string
	queue    string
	around   []interceptor.WorkerInterceptor
	knows    func(provider string) bool // whether it is configured
	throttle time.Duration              // the longest pause between two heartbeats
	keys     *codec.Ring                // what the client and the worker encrypt with
	space    string                     // of Temporal; empty is "default"
	log      log.Logger
	getenv   func(string) string // secrets; nil for none
	// secrets is the folder of the workers' secrets, and blind a listing that is empty.
	secrets string
	blind   atomic.Bool
	// installation marks the instances.
	installation string
	hands        []any // more activities
}

// quick is the production timing with every wait short, except the steady watch: it
// backs off for an hour.
func quick() proxy.Timing {
	t := proxy.DefaultTiming().WithSteadyPoll(time.Hour)
	t.Busy = proxy.Pace{Poll: 50 * time.Millisecond, Max: 50 * time.Millisecond, Lease: time.Minute}
	t.Confirm.Poll = 2 * time.Second // two NotFounds have to be four seconds apart
	t.Retry.Poll, t.Retry.Max = 200*time.Millisecond, 200*time.Millisecond
	t.Outlast = 0
	return t
}

func newLab(t *testing.T, timing proxy.Timing) *lab {
	t.Helper()
	t.Parallel()
	name := "p" + strings.ToLower(rand.Text())
	l := &lab{
		t: t, timing: timing, backend: fake.WithFaults(fake.New("fake")), name: name, queue: "queue-" + name,
		log:          devserver.Quiet(),
		knows:        func(provider string) bool { return provider == "fake" },
		installation: fake.DefaultInstallation,
	}
	l.connect(codec.Options{})
	return l
}

// newNamespace makes a namespace of Temporal, and returns its name. It is not everywhere at
// once.
func (l *lab) newNamespace() string {
	l.t.Helper()
	space := "t-" + strings.ToLower(rand.Text()[:8])
	_, err := l.temporal.WorkflowService().RegisterNamespace(l.t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: space, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(l.t, err)
	return space
}

// connect takes a new client, with keys of its own.
func (l *lab) connect(o codec.Options) {
	l.t.Helper()
	keys, err := codec.Open(o)
	require.NoError(l.t, err)
	options := client.Options{HostPort: server.Address, Namespace: l.space, Logger: l.log}
	keys.Secure(&options)
	c, err := client.Dial(options)
	require.NoError(l.t, err)
	l.t.Cleanup(c.Close)
	l.keys, l.temporal = keys, c
	l.Client = fleet.New(c, "test", fleet.WithTaskQueue(l.queue), fleet.WithDataConverter(keys.DataConverter()))
}

// work starts a worker and returns what stops it; the test's end does so, too.
func (l *lab) work() (stop func()) {
	w := worker.New(l.temporal, l.queue, worker.Options{
		Interceptors: l.around, MaxHeartbeatThrottleInterval: l.throttle,
	})
	workflows.Register(w, l.timing)
	activities.Register(w, l.instances())
	for _, hands := range l.hands {
		w.RegisterActivity(hands)
	}
	require.NoError(l.t, w.Start())
	stop = sync.OnceFunc(w.Stop)
	l.t.Cleanup(stop)
	return stop
}

func (l *lab) instances() *activities.Instances {
	return &activities.Instances{
		Lookup: func(name string) (providers.Provider, func(), bool) {
			return &sighted{l.backend, &l.blind}, func() {}, l.knows(name)
		},
		Installation: l.installation, SecretsDir: l.secrets, Getenv: l.getenv,
	}
}

// sighted shows nothing in its listings while it is blind.
type sighted struct {
	*fake.Faults
	blind *atomic.Bool
}

func (s *sighted) Inventory(ctx context.Context) (providers.Inventory, error) {
	all, err := s.Faults.Inventory(ctx)
	if s.blind.Load() {
		all.Instances = nil
	}
	return all, err
}

// born starts a worker and a proxy, and waits until it runs.
func (l *lab) born() {
	l.t.Helper()
	l.work()
	l.apply("apply", spec)
	l.running()
}

func (l *lab) id() string { return proxy.WorkflowID("default", l.name) }

func (l *lab) wanted(s v1.ProxySpec) v1.Proxy {
	return v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: l.name}, Spec: s}
}

func (l *lab) apply(requestID string, s v1.ProxySpec) (v1.Proxy, bool) {
	l.t.Helper()
	p, created, err := l.Apply(l.t.Context(), l.wanted(s), fleet.Request{ID: requestID})
	require.NoError(l.t, err)
	return p, created
}

// tell sends an update as any client of Temporal may, with an ID of its own.
func (l *lab) tell(updateID, name string) (r proxy.Receipt, err error) {
	return l.ask(updateID, name, proxy.Why{Reason: "test"})
}

// update sends an update once, which must be accepted.
func (l *lab) update(name string, arg any) {
	l.t.Helper()
	_, err := l.ask(rand.Text(), name, arg)
	require.NoError(l.t, err)
}

func (l *lab) ask(updateID, name string, arg any) (r proxy.Receipt, err error) {
	h, err := l.temporal.UpdateWorkflow(l.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: l.id(), UpdateID: updateID, UpdateName: name, Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(l.t.Context(), &r)
	}
	return r, err
}

func (l *lab) told(updateID, name string) proxy.Receipt {
	l.t.Helper()
	r, err := l.tell(updateID, name)
	require.NoError(l.t, err)
	return r
}

func (l *lab) signal(name string, arg any) {
	require.NoError(l.t, l.temporal.SignalWorkflow(l.t.Context(), l.id(), "", name, arg))
}

// get returns the proxy; one that cannot be read is empty.
func (l *lab) get() v1.Proxy {
	p, err := l.Get(l.t.Context(), "default", l.name)
	if err != nil {
		l.t.Log(err)
	}
	return p
}

func (l *lab) reason() string {
	c, _ := l.get().Status.Condition(v1.ConditionProvisioned)
	return c.Reason
}

// running waits until the proxy runs and its steady watch backs off.
func (l *lab) running() {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		pending := l.describe().PendingActivities
		return l.get().Status.Phase == v1.PhaseRunning && len(pending) == 1 && pending[0].Attempt > 1
	}, soon, tick)
}

// looked waits until the backend was read n more times.
func (l *lab) looked(n int) {
	l.t.Helper()
	from := l.backend.Calls(providers.OpGet)
	require.Eventually(l.t, func() bool { return l.backend.Calls(providers.OpGet) >= from+n }, soon, tick)
}

func (l *lab) describe() *workflowservice.DescribeWorkflowExecutionResponse {
	d, err := l.temporal.DescribeWorkflow(l.t.Context(), l.id(), "")
	require.NoError(l.t, err)
	return d.RawResponse
}

func (l *lab) runID() string { return l.describe().WorkflowExecutionInfo.Execution.RunId }

// deleted deletes the proxy and expects a clean end.
func (l *lab) deleted() {
	l.t.Helper()
	_, err := l.Delete(l.t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(l.t, err)
	l.closed()
}

// closed waits for the end and expects it clean, with nothing left.
func (l *lab) closed() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), soon)
	defer cancel()
	require.NoError(l.t, l.WaitGone(ctx, "default", l.name))
	require.Empty(l.t, l.backend.Instances())
	l.replays()
}

// replays proves every run deterministic, and that under another Timing.
func (l *lab) replays() {
	l.t.Helper()
	runs := 0
	for run := l.describe().WorkflowExecutionInfo.FirstRunId; run != ""; runs++ {
		r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
			Interceptors: l.around, DataConverter: l.keys.DataConverter(), FailureConverter: l.keys.FailureConverter(),
		})
		require.NoError(l.t, err)
		workflows.Register(r, proxy.DefaultTiming())
		h := l.history(run)
		require.NoError(l.t, r.ReplayWorkflowHistoryWithOptions(devserver.Quiet(), h, worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: l.id(), RunID: run}, // the ID is part of the input
		}))
		l.keep(runs, h)
		last := h.Events[len(h.Events)-1]
		run = last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	require.Positive(l.t, runs)
}

func (l *lab) history(run string) *history.History {
	h := &history.History{}
	it := l.temporal.GetWorkflowHistory(l.t.Context(), l.id(), run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		ev, err := it.Next()
		require.NoError(l.t, err)
		h.Events = append(h.Events, ev)
	}
	return h
}

// events counts the history of one run by type.
func (l *lab) events(run string) (total int, byType map[enums.EventType]int) {
	byType = map[enums.EventType]int{}
	events := l.history(run).Events
	for _, ev := range events {
		byType[ev.EventType]++
	}
	return len(events), byType
}
