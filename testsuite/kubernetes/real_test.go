//go:build integration && linux

package kubernetes

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/kubelab"
)

const (
	proxyPort   = 3128
	podsAre     = "egress" // their namespace
	zoneOfAll   = "zone-"
	hungry      = "hungry"
	evictsAfter = 10 // seconds
)

// lab is a cluster of two real nodes, and the fleet on it.
type lab struct {
	*world
	cluster *kubelab.Cluster
	nodes   map[string]*kubelab.Node // by zone
	census  *census
	site    *httptest.Server
	names   []string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	c, err := kubelab.Start(t.Context(), kubelab.Options{
		Dir: t.TempDir(), Address: kubelab.WorldAddress, Users: []string{user}, EvictAfter: evictsAfter,
	})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	l := &lab{cluster: c, nodes: map[string]*kubelab.Node{}, site: newSite(t)}
	for _, name := range []string{"a", "b"} {
		node, err := c.StartNode(t.Context(), "node-"+name, zoneOfAll+name)
		require.NoError(t, err)
		t.Cleanup(node.Stop)
		l.nodes[zoneOfAll+name] = node
	}
	require.NoError(t, c.Namespace(t.Context(), podsAre, restricted))
	require.NoError(t, c.Grant(t.Context(), user, podsAre, documentedRules(t)))
	l.census = takeCensus(t, c)
	l.world = newWorld(t, c, podsAre)
	return l
}

// newSite is a target, on the port that a proxy may CONNECT to, that says whom it sees.
func newSite(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.RemoteAddr)
	}))
	require.NoError(t, s.Listener.Close())
	var err error
	s.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(kubelab.WorldAddress, "443"))
	require.NoError(t, err)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// ask sends a request through the proxy of an address.
func (l *lab) ask(ip, target string) (string, error) {
	transport := &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: net.JoinHostPort(ip, strconv.Itoa(proxyPort))}),
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	}
	c := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	res, err := c.Get(target)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// serves waits until each proxy runs and serves: the target sees the address of its Pod.
func (l *lab) serves(names ...string) {
	l.t.Helper()
	seen := map[string]bool{}
	for _, name := range names {
		var ip string
		require.Eventually(l.t, func() bool {
			ip = l.running(name).Status.IP
			who, err := l.ask(ip, l.site.URL)
			return err == nil && strings.HasPrefix(who, ip+":")
		}, soon, tick, "%s does not serve", name)
		seen[ip] = true
	}
	require.Len(l.t, seen, len(names), "each has an address of its own")
}

// pod is the Pod of a proxy.
func (l *lab) pod(name string) *corev1.Pod {
	l.t.Helper()
	_, pod, _ := strings.Cut(l.running(name).Status.ProviderID, providers.IDSeparator)
	p, err := l.cluster.Admin.CoreV1().Pods(podsAre).Get(l.t.Context(), pod, metav1.GetOptions{})
	require.NoError(l.t, err)
	return p
}

// restarted waits until the container of a Pod has been started anew after an end.
func (l *lab) restarted(before *corev1.Pod, reason string) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		p, err := l.cluster.Admin.CoreV1().Pods(podsAre).Get(l.t.Context(), before.Name, metav1.GetOptions{})
		require.NoError(l.t, err)
		require.Equal(l.t, before.UID, p.UID, "it is another Pod")
		s := p.Status.ContainerStatuses[0]
		return s.RestartCount == 1 && s.State.Running != nil && s.LastTerminationState.Terminated.Reason == reason
	}, soon, tick)
}

func TestTwentyProxiesOnRealPods(t *testing.T) {
	l := newLab(t)
	for i := range wantReal {
		name := fmt.Sprintf("p%d", i)
		l.names = append(l.names, name)
		l.apply(name, v1.Placement{Zone: zoneOfAll + string(rune('a'+i%2))})
	}
	l.serves(l.names...)
	require.Equal(t, wantReal, l.census.alive())
	counted.real.Add(int64(l.census.alive()))

	l.keepsOthersOut()
	l.survivesAKill("p0")
	l.survivesItsHunger()
	l.replacesWhatIsGone("p1")
	l.waitsForALostNode(zoneOfAll + "b")

	l.remove(l.names...)
	require.Eventually(t, func() bool { return l.census.alive() == 0 }, soon, tick)
}

// keepsOthersOut asks for what the proxy never does: a port that is no web server's.
func (l *lab) keepsOthersOut() {
	l.t.Helper()
	_, err := l.ask(l.running("p0").Status.IP, "https://"+net.JoinHostPort(kubelab.WorldAddress, "22"))
	require.ErrorContains(l.t, err, "Forbidden")
}

// survivesAKill: the kubelet starts the container again, and the instance is the same.
func (l *lab) survivesAKill(name string) {
	l.t.Helper()
	p := l.pod(name)
	node := l.nodes[p.Spec.NodeSelector[corev1.LabelTopologyZone]]
	born := l.census.births()
	require.NoError(l.t, node.KillContainer(l.t.Context(), p.Status.ContainerStatuses[0].ContainerID))
	l.restarted(p, "Error")
	l.serves(name)
	require.Equal(l.t, born, l.census.births())
	require.NotContains(l.t, l.reasons(name), v1.ReasonInstanceLost)
}

// survivesItsHunger: a container that is ended for its memory is started again, too.
func (l *lab) survivesItsHunger() {
	l.t.Helper()
	l.apply(hungry, v1.Placement{Image: kubelab.ProxyImage})
	l.serves(hungry)
	p := l.pod(hungry)
	_, err := http.Get("http://" + net.JoinHostPort(p.Status.PodIP, strconv.Itoa(proxyPort)) + "/eat")
	require.Error(l.t, err, "it has ended")
	l.restarted(p, "OOMKilled")
	l.serves(hungry)
	require.NotContains(l.t, l.reasons(hungry), v1.ReasonInstanceLost)
	l.remove(hungry)
}

// replacesWhatIsGone: a Pod that somebody deletes is noticed, and made again once it is
// gone. A finalizer holds it until it was seen to go.
func (l *lab) replacesWhatIsGone(name string) {
	l.t.Helper()
	before, born := l.pod(name), l.census.births()
	pods := l.cluster.Admin.CoreV1().Pods(podsAre)
	hold := func(finalizers string) {
		_, err := pods.Patch(l.t.Context(), before.Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
		require.NoError(l.t, err)
	}
	hold(`["example.com/wait"]`)
	require.NoError(l.t, pods.Delete(l.t.Context(), before.Name, metav1.DeleteOptions{}))
	require.Eventually(l.t, func() bool {
		return count(l.reasons(name), v1.ReasonInstanceTerminated) == 1
	}, soon, tick, "%s was not seen to go", name)
	require.Equal(l.t, born, l.census.births(), "it is still there")
	hold("null")
	require.Eventually(l.t, func() bool { return l.census.births() == born+1 }, soon, tick)
	l.serves(name)
	require.NotContains(l.t, l.reasons(name), v1.ReasonInstanceLost)
	require.Equal(l.t, wantReal, l.census.alive())
}

// waitsForALostNode: Pods of a node that nobody hears of are there until the node itself
// says that they are gone; they are made again then, and never before.
func (l *lab) waitsForALostNode(zone string) {
	l.t.Helper()
	node, born := l.nodes[zone], l.census.births()
	lost := map[string]int{} // how often each was lost before
	for _, name := range l.names {
		if l.pod(name).Spec.NodeName == node.Name {
			lost[name] = count(l.reasons(name), v1.ReasonInstanceLost)
		}
	}
	require.NotEmpty(l.t, lost)
	require.NoError(l.t, node.Cut(l.t.Context()))
	require.NoError(l.t, l.cluster.WaitNodeLost(l.t.Context(), node.Name))
	for name := range lost { // the cluster wants them gone, and cannot see it done
		require.Eventually(l.t, func() bool { return l.get(name).Status.Phase != v1.PhaseRunning }, soon, tick, name)
	}
	require.Eventually(l.t, func() bool { return l.evicted(node.Name) == len(lost) }, soon, tick)
	for name, before := range lost {
		now := count(l.reasons(name), v1.ReasonInstanceLost)
		require.Equal(l.t, before, now, "%s was called lost while its Pod is there", name)
	}
	require.Equal(l.t, born, l.census.births())
	require.Equal(l.t, wantReal, l.census.alive())

	require.NoError(l.t, node.Join(l.t.Context()))
	require.NoError(l.t, l.cluster.WaitNode(l.t.Context(), node.Name))
	require.Eventually(l.t, func() bool { return l.census.births() == born+len(lost) }, soon, tick)
	l.serves(l.names...)
	require.Equal(l.t, wantReal, l.census.alive())
}

// evicted is how many Pods of a node are on their way out.
func (l *lab) evicted(node string) (n int) {
	l.t.Helper()
	list, err := l.cluster.Admin.CoreV1().Pods(podsAre).List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	for _, p := range list.Items {
		if p.Spec.NodeName == node && p.DeletionTimestamp != nil {
			n++
		}
	}
	return n
}

func count(list []string, one string) (n int) {
	for _, s := range list {
		if s == one {
			n++
		}
	}
	return n
}
