//go:build integration && linux

package kubelab_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/egressfleet/egressfleet/testsuite/kubelab"
)

const (
	soon = 3 * time.Minute // generous: the machine may be busy
	tick = 50 * time.Millisecond
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy", Image: "squid"}}},
	}
}

func TestAClusterKeepsItsPodsWhileItsAPIServerIsAway(t *testing.T) {
	t.Parallel()
	c, err := kubelab.Start(t.Context(), kubelab.Options{Dir: t.TempDir(), Kwok: true, Users: []string{"fleet"}})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	require.NoError(t, c.AddNode(t.Context(), "node-a", "zone-a"))
	require.NoError(t, c.Namespace(t.Context(), "proxies", nil))
	pods := c.Admin.CoreV1().Pods("proxies")
	_, err = pods.Create(t.Context(), pod("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	runs := func() bool {
		p, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != ""
	}
	require.Eventually(t, runs, soon, tick)

	c.KillAPI()
	require.False(t, runs())
	require.NoError(t, c.StartAPI(t.Context()))
	require.True(t, runs())
}

// kwok deletes by name: a Pod that has the name of one that was dying is not its to take.
func TestKwokDeletesOnlyWhatIsDying(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := kubelab.Start(t.Context(), kubelab.Options{Dir: dir, Kwok: true})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	require.NoError(t, c.Namespace(t.Context(), "proxies", nil))
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "pki", "kwok.kubeconfig"))
	require.NoError(t, err)
	kwok, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = c.Admin.CoreV1().Pods("proxies").Create(t.Context(), pod("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	try := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	require.Eventually(t, func() bool { // a policy holds some moments after it was made
		err = kwok.CoreV1().Pods("proxies").Delete(t.Context(), "a", try)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
	}, soon, tick, "kwok may delete what lives")
	require.ErrorContains(t, err, "the Pod is not being deleted")
	require.NoError(t, c.Admin.CoreV1().Pods("proxies").Delete(t.Context(), "a", try), "others may")
}

func TestAUserMayDoWhatItsRoleSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	c, err := kubelab.Start(t.Context(), kubelab.Options{Dir: t.TempDir(), Users: []string{"fleet"}})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	require.NoError(t, c.Namespace(t.Context(), "proxies", nil))
	file := t.TempDir() + "/kubeconfig"
	require.NoError(t, kubelab.WriteKubeconfig(file, c.Config("fleet")))
	config, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(t, err)
	fleet, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	list := func(namespace string) error {
		_, err := fleet.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	require.True(t, apierrors.IsForbidden(list("proxies")))
	require.NoError(t, c.Grant(t.Context(), "fleet", "proxies",
		[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}))
	require.Eventually(t, func() bool { return list("proxies") == nil }, soon, tick)
	require.True(t, apierrors.IsForbidden(list("default")))
	_, err = fleet.CoreV1().Pods("proxies").Create(t.Context(), pod("a"), metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), err)
}

func TestAStartThatFailsLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := kubelab.Start(ctx, kubelab.Options{Dir: t.TempDir()})
	require.ErrorIs(t, err, context.Canceled)
}
