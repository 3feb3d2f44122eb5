package realserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/workflows/installation"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	l := newLab(t, quick())
	_, err := l.Get(t.Context(), "default", "nobody")
	require.ErrorIs(t, err, fleet.ErrNotFound)
	_, err = l.Delete(t.Context(), "default", "nobody", "", fleet.Request{})
	require.ErrorIs(t, err, fleet.ErrNotFound)
	require.NoError(t, l.WaitGone(t.Context(), "default", "nobody"))
	l.born()
	l.deleted()
	_, err = l.Get(t.Context(), "default", l.name)
	require.ErrorIs(t, err, fleet.ErrNotFound, "what is closed is gone")
}

func TestAnotherProviderIsAConflict(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	other := spec
	other.Provider = "else"
	_, _, err := l.Apply(t.Context(), l.wanted(other), fleet.Request{ID: "move"})
	require.ErrorIs(t, err, fleet.ErrConflict)
	var conflict *fleet.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "spec.provider", conflict.Field)
	require.Equal(t, "else", conflict.Value)
	l.deleted()
}

func TestWhatCannotBeRightNeverReachesTheServer(t *testing.T) {
	l := newLab(t, quick())
	bad := spec
	bad.Port = 0
	_, _, err := l.Apply(t.Context(), l.wanted(bad), fleet.Request{ID: "bad"})
	var field *v1.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "spec.port", field.Field)
	_, err = l.Get(t.Context(), "default", l.name)
	require.ErrorIs(t, err, fleet.ErrNotFound)
}

func TestAStandInForUnknownContentStartsNothing(t *testing.T) {
	l := newLab(t, quick())
	l.work()
	stranger := spec
	stranger.CloudInit.Inline = "redacted:sha256:00:1"
	_, _, err := l.Apply(t.Context(), l.wanted(stranger), fleet.Request{ID: "apply"})
	var field *v1.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "spec.cloudInit.inline", field.Field)
	_, err = l.Get(t.Context(), "default", l.name)
	require.ErrorIs(t, err, fleet.ErrNotFound, "there is no workflow")
	require.Empty(t, l.backend.Requests())
}

func TestASpecThatNoServerTakesIsNamed(t *testing.T) {
	l := newLab(t, quick())
	large := spec
	large.CloudInit.Inline = strings.Repeat("<", v1.MaxInlineCloudInit) // six bytes each in JSON
	_, _, err := l.Apply(t.Context(), l.wanted(large), fleet.Request{ID: "apply"})
	var field *v1.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "spec.cloudInit", field.Field)
}

func TestWithoutAWorkerAnAnswerComesAllTheSame(t *testing.T) {
	l := newLab(t, quick())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, _, err := l.Apply(ctx, l.wanted(spec), fleet.Request{ID: "apply"})
	require.ErrorIs(t, err, fleet.ErrNoWorker)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	waiting := l.get()
	require.Equal(t, v1.PhasePending, waiting.Status.Phase)
	require.Equal(t, spec, waiting.Spec)
	require.False(t, waiting.Metadata.CreatedAt.IsZero())
	require.Equal(t, l.describe().WorkflowExecutionInfo.FirstRunId, l.get().Metadata.UID)
	_, err = l.Delete(t.Context(), "default", l.name, "changed my mind", fleet.Request{})
	require.NoError(t, err, "the wish is left with the server")
	l.work()
	l.closed()
}

func TestWithoutAServerAnAnswerComesAllTheSame(t *testing.T) {
	t.Parallel()
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Logger: devserver.Quiet()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	f := fleet.New(c, "test")
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: "a"}, Spec: spec}
	for name, call := range map[string]func() error{
		"apply":  func() error { _, _, err := f.Apply(ctx, p, fleet.Request{ID: "r"}); return err },
		"get":    func() error { _, err := f.Get(ctx, "default", "a"); return err },
		"list":   func() error { _, err := f.List(ctx, ""); return err },
		"delete": func() error { _, err := f.Delete(ctx, "default", "a", "", fleet.Request{}); return err },
		"ready":  func() error { return f.Ready(ctx) },
	} {
		require.ErrorIs(t, call(), fleet.ErrUnavailable, name)
	}
}

func TestListShowsLivingProxiesOfANamespace(t *testing.T) {
	l := newLab(t, quick())
	l.work()
	space := "ns-" + strings.ToLower(rand.Text()[:8])
	for _, name := range []string{"b", "a"} {
		p := v1.Proxy{Metadata: v1.Metadata{Namespace: space, Name: name}, Spec: spec}
		p.Metadata.Labels = map[string]string{"team": name}
		_, _, err := l.Apply(t.Context(), p, fleet.Request{ID: "apply-" + name})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		list, err := l.List(t.Context(), space)
		running := func(p v1.Proxy) bool { return p.Status.Phase == v1.PhaseRunning }
		return err == nil && len(list) == 2 && running(list[0]) && running(list[1])
	}, soon, tick, "Visibility catches up")
	list, err := l.List(t.Context(), space)
	require.NoError(t, err)
	require.Equal(t, "a", list[0].Metadata.Name)
	require.Equal(t, map[string]string{"team": "b"}, list[1].Metadata.Labels)
	all, err := l.List(t.Context(), "")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 2)
	for _, name := range []string{"a", "b"} {
		_, err := l.Delete(t.Context(), space, name, "", fleet.Request{})
		require.NoError(t, err)
		require.NoError(t, l.WaitGone(t.Context(), space, name))
	}
	require.Eventually(t, func() bool {
		list, err := l.List(t.Context(), space)
		return err == nil && len(list) == 0
	}, soon, tick)
}

// The content of inline user-data is in the plain history, as documented, and in
// nothing that is read: memo, search attributes, status, answers.
func TestInlineUserDataIsShownNowhere(t *testing.T) {
	const sentinel = "s3nt1nel-in-cloud-init"
	l := newLab(t, quick())
	l.work()
	secret := spec
	secret.CloudInit.Inline = "#cloud-config\n# " + sentinel
	p, _ := l.apply("apply", secret)
	l.running()
	require.Contains(t, string(l.backend.Requests()[0].CloudInit), sentinel, "it was delivered")
	info, err := protojson.Marshal(l.describe())
	require.NoError(t, err)
	require.NotContains(t, string(info), sentinel)
	for _, shown := range []v1.Proxy{p, l.get()} {
		require.NotContains(t, fmt.Sprintf("%+v", shown), sentinel)
		require.True(t, shown.Spec.CloudInit.IsRedacted())
	}
	again := l.get() // read, and written back
	_, _, err = l.Apply(t.Context(), again, fleet.Request{ID: "again"})
	require.NoError(t, err)
	require.EqualValues(t, 1, l.get().Metadata.Generation)
	l.deleted()
	require.Len(t, l.backend.Requests(), 1)
}

func TestTheNamespaceIsMadeReadyOnceAndAgain(t *testing.T) {
	l := newLab(t, quick())
	space := l.newNamespace()
	c, err := client.NewClientFromExisting(l.temporal, client.Options{Namespace: space, Logger: devserver.Quiet()})
	require.NoError(t, err)
	mine, other := fleet.New(c, "mine"), fleet.New(c, "other")
	require.Eventually(t, func() bool { return mine.EnsureSearchAttributes(t.Context(), space) == nil }, soon, tick)
	require.NoError(t, mine.EnsureSearchAttributes(t.Context(), space))

	require.Eventually(t, func() bool { return mine.EnsureInstallation(t.Context()) == nil }, soon, tick)
	record, err := c.DescribeWorkflow(t.Context(), installation.WorkflowID("mine"), "")
	require.NoError(t, err)
	require.NoError(t, mine.EnsureInstallation(t.Context()))
	same, err := c.DescribeWorkflow(t.Context(), installation.WorkflowID("mine"), "")
	require.NoError(t, err)
	require.Equal(t, record.WorkflowStartTime, same.WorkflowStartTime, "the birth stays what it was")
	require.Eventually(t, func() bool {
		err := other.EnsureInstallation(t.Context())
		return err != nil && strings.Contains(err.Error(), `"other"`) && strings.Contains(err.Error(), `"mine"`)
	}, soon, tick, "a namespace belongs to one installation")
}

func TestSearchAttributesThatCannotBeEnsuredNameTheCommand(t *testing.T) {
	l := newLab(t, quick())
	err := l.EnsureSearchAttributes(t.Context(), "no-such-namespace")
	require.ErrorContains(t, err, "temporal operator search-attribute create --namespace no-such-namespace "+
		"--name ProxyPhase --type Keyword")
}

// Field report 56.
func TestADeleteIsLeftWithAWorkflowThatABadReleaseHasWedged(t *testing.T) {
	l := newLab(t, quick())
	bad := worker.New(l.temporal, l.queue, worker.Options{})
	bad.RegisterWorkflowWithOptions(func(workflow.Context, proxy.Input) error {
		panic("a bad release")
	}, workflow.RegisterOptions{Name: proxy.WorkflowType})
	require.NoError(t, bad.Start())
	stop := sync.OnceFunc(bad.Stop)
	t.Cleanup(stop)
	_, err := l.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: l.id(), TaskQueue: l.queue},
		proxy.WorkflowType, proxy.Input{Spec: spec})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return l.describe().GetPendingWorkflowTask().GetAttempt() > 1
	}, soon, tick, "its tasks fail")
	_, err = l.Delete(t.Context(), "default", l.name, "get rid of it", fleet.Request{})
	require.NoError(t, err)
	stop()
	l.work()
	l.closed()
}

func TestWhatCannotBeShownHidesNothing(t *testing.T) {
	l := newLab(t, quick())
	l.born()
	odd := "odd-" + l.name
	_, err := l.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: proxy.WorkflowID("default", odd), TaskQueue: "nobody-" + l.queue,
		Memo: map[string]any{proxy.MemoProxy: "no proxy"},
	}, proxy.WorkflowType, proxy.Input{Spec: spec})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		page, err := l.temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: "WorkflowId = '" + proxy.WorkflowID("default", odd) + "'",
		})
		return err == nil && len(page.GetExecutions()) == 1
	}, soon, tick)
	all, err := l.List(t.Context(), "default")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, p := range all {
		names[p.Metadata.Name] = true
	}
	require.True(t, names[l.name])
	require.False(t, names[odd])
	_, err = l.Get(t.Context(), "default", odd)
	require.ErrorContains(t, err, "memo", "and the one asked for says why")
	require.NoError(t, l.temporal.TerminateWorkflow(t.Context(), proxy.WorkflowID("default", odd), "", "test"))
	l.deleted()
}
