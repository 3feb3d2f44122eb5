//go:build integration && linux

package kubernetes

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubelab"
)

const (
	installation = "production" // as the Role has them
	providerName = "kubernetes"
	user         = "fleet" // whose rights are those of the guide
)

// restricted makes the API server refuse a Pod that could harm its node.
var restricted = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}

// startKwok starts a cluster with two nodes that kwok plays, in two zones.
func startKwok(t *testing.T, dir string) *kubelab.Cluster {
	t.Helper()
	c, err := kubelab.Start(t.Context(), kubelab.Options{Dir: dir, Kwok: true, Users: []string{user}})
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		require.NoError(t, c.AddNode(t.Context(), "node-"+name, "zone-"+name))
	}
	return c
}

// own is a cluster of one test, which may break it.
func own(t *testing.T) *kubelab.Cluster {
	t.Helper()
	c := startKwok(t, t.TempDir())
	t.Cleanup(c.Stop)
	return c
}

// tenant is an installation with a namespace of its own in a cluster.
type tenant struct {
	*kubelab.Cluster
	providers.Provider
	t         *testing.T
	namespace string
	cfg       kubernetes.Config
}

// newTenant makes the namespace, the rights and the provider.
func newTenant(t *testing.T, c *kubelab.Cluster, change ...func(*kubernetes.Config)) *tenant {
	t.Helper()
	n := &tenant{Cluster: c, t: t, namespace: "t-" + strings.ToLower(rand.Text()[:8])}
	require.NoError(t, c.Namespace(t.Context(), n.namespace, restricted))
	n.grant(documentedRules(t))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, kubelab.WriteKubeconfig(file, c.Config(user)))
	n.cfg = kubernetes.Config{
		Kubeconfig: file, Namespace: n.namespace, ClusterRanges: []string{"10.128.0.0/16"},
	}
	for _, f := range change {
		f(&n.cfg)
	}
	n.open()
	return n
}

// open makes the provider anew, as a restart of the worker does.
func (n *tenant) open() {
	n.t.Helper()
	p, err := kubernetes.New(n.t.Context(), providerName, installation, n.cfg)
	require.NoError(n.t, err)
	n.Provider = p
}

// grant replaces the rights of the user, and waits until the API server knows.
func (n *tenant) grant(rules []rbacv1.PolicyRule) {
	n.t.Helper()
	require.NoError(n.t, n.Grant(n.t.Context(), user, n.namespace, rules))
}

// request asks for an instance of that number.
func request(i int) providers.CreateRequest {
	uid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
	return providers.CreateRequest{
		Name: providers.NameFromUID(uid), UID: uid, Attempt: 1, Installation: installation,
		Owner: fmt.Sprintf("default/p%d", i), SpecMark: "{}", Port: 3128,
	}
}

// pods are all of the namespace, as the administrator sees them.
func (n *tenant) pods() []corev1.Pod {
	n.t.Helper()
	list, err := n.Admin.CoreV1().Pods(n.namespace).List(n.t.Context(), metav1.ListOptions{})
	require.NoError(n.t, err)
	return list.Items
}

// running waits until an instance runs.
func (n *tenant) running(id string) (inst *providers.Instance) {
	n.t.Helper()
	require.Eventually(n.t, func() (ok bool) {
		var err error
		inst, err = n.Get(n.t.Context(), id)
		return err == nil && inst.State == providers.StateRunning
	}, soon, tick)
	return inst
}

// gone deletes an instance, and waits until it is gone.
func (n *tenant) gone(id string) {
	n.t.Helper()
	require.NoError(n.t, n.Delete(n.t.Context(), id))
	require.Eventually(n.t, func() bool {
		_, err := n.Get(n.t.Context(), id)
		return providers.ClassOf(err) == providers.ErrNotFound
	}, soon, tick)
}

// atOnce does something for each number below n, by some workers.
func atOnce(n int, do func(i int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}
