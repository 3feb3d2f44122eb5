package realserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	apiclient "github.com/egressfleet/egressfleet/api/client"
	apiserver "github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/codec"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// followLab is a namespace of Temporal with proxies whose memos are encrypted, and a
// client that follows them.
type followLab struct {
	*lab

	follower *fleet.Client
	mu       sync.Mutex
	queries  []string // of the follower
}

// visible is how late the Visibility of the test's server may be.
const visible = 5 * time.Second

func newFollowLab(t *testing.T) *followLab {
	t.Helper()
	f := &followLab{lab: newSealedLab(t, newKeyDir(t, "one"))}
	f.follower = f.newFollower(f.space, f.keys, fleet.WithLag(visible))
	return f
}

// newFollower is a client of its own, whose queries are noted.
func (f *followLab) newFollower(space string, keys *codec.Ring, opts ...fleet.Option) *fleet.Client {
	note := func(
		ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		if r, is := req.(interface{ GetQuery() string }); is {
			f.mu.Lock()
			f.queries = append(f.queries, r.GetQuery())
			f.mu.Unlock()
		}
		return call(ctx, method, req, reply, conn, opts...)
	}
	options := client.Options{
		HostPort: server.Address, Namespace: space, Logger: devserver.Quiet(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(note)}},
	}
	keys.Secure(&options)
	c, err := client.Dial(options)
	require.NoError(f.t, err)
	f.t.Cleanup(c.Close)
	return fleet.New(c, "test", append(opts, fleet.WithDataConverter(keys.DataConverter()))...)
}

// asked counts the queries since the last time, and those for changes alone.
func (f *followLab) asked() (all, changes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, query := range f.queries {
		if strings.Contains(query, "ProxyChanged >") {
			changes++
		}
	}
	all, f.queries = len(f.queries), nil
	return all, changes
}

// sees follows until what is shown by name is as wanted. Those of always are never gone.
func (f *followLab) sees(want func(shown map[string]v1.Proxy) bool, always ...string) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		living, err := f.follower.Follow(f.t.Context())
		require.NoError(f.t, err)
		shown := map[string]v1.Proxy{}
		for _, p := range living.Proxies {
			shown[p.Metadata.Name] = p
		}
		for _, name := range always {
			require.Contains(f.t, shown, name)
		}
		return want(shown)
	}, soon, tick)
}

func (f *followLab) make(name string) {
	f.t.Helper()
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: name}, Spec: spec}
	_, _, err := f.Apply(f.t.Context(), p, fleet.Request{ID: rand.Text()})
	require.NoError(f.t, err)
	f.sees(func(shown map[string]v1.Proxy) bool { return shown[name].Status.Phase == v1.PhaseRunning })
}

func (f *followLab) remove(name string) {
	f.t.Helper()
	_, err := f.Delete(f.t.Context(), "default", name, "", fleet.Request{})
	require.NoError(f.t, err)
	require.NoError(f.t, f.WaitGone(f.t.Context(), "default", name))
}

func TestAFleetIsFollowedThroughEveryChange(t *testing.T) {
	f := newFollowLab(t)
	f.work()
	for _, name := range []string{"a", "b", "c", f.name} {
		f.make(name)
	}
	f.asked()
	_, err := f.Hold(t.Context(), "default", "a", v1.Hold{Reason: "why"}, fleet.Request{})
	require.NoError(t, err)
	f.sees(func(shown map[string]v1.Proxy) bool { return shown["a"].Status.Held }, "a", "b", "c", f.name)

	f.remove("b")
	f.sees(func(shown map[string]v1.Proxy) bool { return len(shown) == 3 }, "a", "c", f.name)

	was, err := f.Get(t.Context(), "default", "c")
	require.NoError(t, err)
	f.remove("c")
	f.make("c")
	f.sees(func(shown map[string]v1.Proxy) bool {
		return shown["c"].Metadata.UID != was.Metadata.UID && shown["c"].Metadata.UID != ""
	}, "a", "c", f.name)

	// A new run shows what the one before did, and is followed on.
	first := f.runID()
	f.signal(proxy.SignalHint, proxy.Hint{Renew: true})
	f.sees(func(map[string]v1.Proxy) bool { return f.runID() != first }, "a", "c", f.name)
	f.signal(proxy.SignalHealth, proxy.HealthReport{Healthy: true, Reason: v1.ReasonHealthy})
	f.sees(func(shown map[string]v1.Proxy) bool { return shown[f.name].Status.Healthy != nil }, "a", "c", f.name)

	require.NoError(t, f.temporal.TerminateWorkflow(t.Context(), proxy.WorkflowID("default", "a"), "", "by hand"))
	f.sees(func(shown map[string]v1.Proxy) bool { return len(shown) == 2 }, "c", f.name)

	_, changes := f.asked()
	require.Positive(t, changes, "it was followed, and not only listed")
	listed, err := f.List(t.Context(), "")
	require.NoError(t, err)
	living, err := f.follower.Follow(t.Context())
	require.NoError(t, err)
	require.Equal(t, listed, living.Proxies)
	f.remove(f.name)
	f.remove("c")
}

// olderWorker publishes as versions of before do: the memo alone, each time that it is
// told to. It begins a new run when it is told to renew.
func olderWorker(ctx workflow.Context, p v1.Proxy) error {
	if err := workflow.UpsertMemo(ctx, map[string]any{proxy.MemoProxy: p}); err != nil {
		return err
	}
	for {
		workflow.GetSignalChannel(ctx, "change").Receive(ctx, &p.Status.IP)
		if p.Status.IP == "renew" {
			return workflow.NewContinueAsNewError(ctx, proxy.WorkflowType, p)
		}
		if err := workflow.UpsertMemo(ctx, map[string]any{proxy.MemoProxy: p}); err != nil {
			return err
		}
	}
}

// older starts such a worker and a proxy of it, with search attributes of before.
func (f *followLab) older(c client.Client, attributes ...temporal.SearchAttributeUpdate) (change func(ip string)) {
	f.t.Helper()
	w := worker.New(c, f.queue, worker.Options{})
	w.RegisterWorkflowWithOptions(olderWorker, workflow.RegisterOptions{Name: proxy.WorkflowType})
	require.NoError(f.t, w.Start())
	f.t.Cleanup(w.Stop)
	p := v1.Proxy{Metadata: v1.Metadata{Namespace: "default", Name: "old", UID: "uid"}}
	p.Status.Phase = v1.PhaseRunning
	id := proxy.WorkflowID("default", "old")
	_, err := c.ExecuteWorkflow(f.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: f.queue, TypedSearchAttributes: temporal.NewSearchAttributes(attributes...),
	}, proxy.WorkflowType, p)
	require.NoError(f.t, err)
	return func(ip string) { require.NoError(f.t, c.SignalWorkflow(f.t.Context(), id, "", "change", ip)) }
}

// addresses has a proxy of an older worker change for longer than Visibility may be late.
func (f *followLab) addresses(change func(ip string)) {
	f.t.Helper()
	f.sees(func(shown map[string]v1.Proxy) bool { return shown["old"].Metadata.UID == "uid" })
	ip := ""
	for begun := time.Now(); time.Since(begun) < 2*visible; {
		ip = "10.0.0." + rand.Text()
		change(ip)
		f.sees(func(shown map[string]v1.Proxy) bool { return shown["old"].Status.IP == ip }, "old")
	}
	f.asked()
	f.sees(func(shown map[string]v1.Proxy) bool { return shown["old"].Status.IP == ip }, "old")
	_, changes := f.asked()
	require.Zero(f.t, changes, "it is listed")
}

func TestAProxyOfAnOlderWorkerIsSeenAllTheSame(t *testing.T) {
	f := newFollowLab(t)
	f.addresses(f.older(f.temporal))
}

// The attribute goes along from run to run: one of an older worker shows that of a newer.
func TestARunOfAnOlderWorkerAfterANewerOneIsSeenAllTheSame(t *testing.T) {
	f := newFollowLab(t)
	at := time.Now().Add(visible)
	change := f.older(f.temporal, temporal.NewSearchAttributeKeyTime("ProxyChanged").ValueSet(at))
	f.sees(func(shown map[string]v1.Proxy) bool {
		return shown["old"].Metadata.UID == "uid" && time.Now().After(at)
	})
	change("renew")
	f.sees(func(shown map[string]v1.Proxy) bool { return shown["old"].Status.IP == "renew" }, "old")
	f.addresses(change)
}

func TestWithoutTheAttributeInTheNamespaceTheFleetIsListed(t *testing.T) {
	f := newFollowLab(t)
	space := "t-" + strings.ToLower(rand.Text()[:8])
	_, err := f.temporal.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: space, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	plain, err := codec.Open(codec.Options{})
	require.NoError(t, err)
	f.follower = f.newFollower(space, plain, fleet.WithLag(visible))
	require.Eventually(t, func() bool {
		_, err := f.follower.Follow(t.Context()) // a new namespace is not everywhere at once
		return err == nil
	}, soon, tick)
	c, err := client.NewClientFromExisting(f.temporal, client.Options{Namespace: space, Logger: devserver.Quiet()})
	require.NoError(t, err)
	f.addresses(f.older(c))
}

func TestADeletedProxyLeavesDiscovery(t *testing.T) {
	f := newFollowLab(t)
	f.work()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- apiserver.New(f.follower, apiserver.Options{}).Run(ctx, l) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	c, err := apiclient.NewClientWithResponses("http://" + l.Addr().String())
	require.NoError(t, err)
	handedOut := func(want ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			answer, err := c.GetDiscoveryWithResponse(t.Context(), nil)
			require.NoError(t, err)
			if answer.JSON200 == nil { // it has not been loaded yet
				return false
			}
			var list v1.Discovery
			require.NoError(t, json.Unmarshal(answer.Body, &list))
			names := []string{}
			for _, e := range list.Proxies {
				names = append(names, e.Name)
			}
			return strings.Join(names, " ") == strings.Join(want, " ")
		}, soon, tick)
	}
	handedOut()
	for _, name := range []string{"a", "b"} {
		_, _, err := f.Apply(t.Context(), v1.Proxy{
			Metadata: v1.Metadata{Namespace: "default", Name: name}, Spec: spec,
		}, fleet.Request{ID: "make"})
		require.NoError(t, err)
	}
	handedOut("a", "b")
	f.asked()
	f.remove("a")
	handedOut("b")
	_, changes := f.asked()
	require.Positive(t, changes, "it was followed, and not only listed")
	f.remove("b")
	handedOut()
}
