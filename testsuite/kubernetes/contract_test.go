//go:build integration && linux

package kubernetes

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubelab"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// tenants finds the tenant of a provider that the suite was given.
type tenants struct {
	cluster *kubelab.Cluster
	all     sync.Map
}

func (m *tenants) of(t *testing.T, p providers.Provider) *tenant {
	t.Helper()
	n, ok := m.all.Load(p)
	require.True(t, ok)
	return n.(*tenant)
}

// again is another provider of a tenant.
func (m *tenants) again(t *testing.T, p providers.Provider, installation string) providers.Provider {
	t.Helper()
	n := m.of(t, p)
	other, err := kubernetes.New(t.Context(), providerName, installation, n.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	m.all.Store(providers.Provider(other), n)
	return other
}

// The rows that need no broken backend: kubeapi is held to what the real one does.
func TestContract(t *testing.T) {
	m := &tenants{cluster: own(t)}
	ran := providertest.Suite{
		New: func(t *testing.T) providers.Provider {
			n := newTenant(t, m.cluster, unthrottled)
			m.all.Store(n.Provider, n)
			return n.Provider
		},
		Installation: installation, Name: providerName,
		Secrets: []string{m.cluster.Config(user).BearerToken},
		Checker: true, Inventory: true, ListsState: true,
		Lab: m.hooks(), RunningWithin: soon, GoneWithin: soon, PromptWithin: 10 * time.Second, Poll: tick,
	}.Run(t)
	require.NotEmpty(t, ran)
}

func (m *tenants) hooks() providertest.Lab {
	return providertest.Lab{
		Reopen: func(t *testing.T, p providers.Provider) providers.Provider { return m.again(t, p, installation) },
		Neighbour: func(t *testing.T, p providers.Provider, other string) providers.Provider {
			m.of(t, p).grant(slices.Concat(documentedRules(t), shippedRules(t, other)))
			return m.again(t, p, other)
		},
		Plant: func(t *testing.T, p providers.Provider) []string {
			n := m.of(t, p)
			foreign := marks(request(1))
			foreign[providers.MarkInstallation] = "elsewhere"
			n.put(t, "bare", nil)
			n.put(t, "foreign", foreign)
			return []string{n.namespace + "/bare", n.namespace + "/foreign"}
		},
		Squat: func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
			labels := marks(req)
			delete(labels, missing)
			m.of(t, p).put(t, req.Name, labels)
		},
		Leftovers: func(t *testing.T, p providers.Provider, uid string) (left []string) {
			for _, pod := range m.of(t, p).pods() {
				if pod.Labels[providers.MarkUID] == uid {
					left = append(left, pod.Name)
				}
			}
			return left
		},
		Refuse:  func(t *testing.T, p providers.Provider) func() { return m.of(t, p).refuse(t) },
		Exhaust: func(t *testing.T, p providers.Provider) func() { return m.of(t, p).exhaust(t) },
	}
}

func marks(req providers.CreateRequest) map[string]string {
	return map[string]string{
		providers.MarkManaged: providers.MarkManagedYes, providers.MarkUID: req.UID,
		providers.MarkInstallation: req.Installation,
	}
}

// put makes a Pod that is not the provider's, and removes it at the end of the test.
func (n *tenant) put(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	pods := n.Admin.CoreV1().Pods(n.namespace)
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(13)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "other", Image: "other", SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// refuse swaps the token for one that nobody knows.
func (n *tenant) refuse(t *testing.T) (restore func()) {
	t.Helper()
	unknown := n.Config(user)
	unknown.BearerToken = "nobody-knows-this-token"
	require.NoError(t, kubelab.WriteKubeconfig(n.cfg.Kubeconfig, unknown))
	return func() { require.NoError(t, kubelab.WriteKubeconfig(n.cfg.Kubeconfig, n.Config(user))) }
}

// exhaust leaves no room in the namespace.
func (n *tenant) exhaust(t *testing.T) (restore func()) {
	t.Helper()
	quotas := n.Admin.CoreV1().ResourceQuotas(n.namespace)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		q, err := quotas.Get(t.Context(), "none", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) == 1
	}, soon, tick)
	return func() { // it may be called again
		err := quotas.Delete(context.WithoutCancel(t.Context()), "none", metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), err)
	}
}
