package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

const nodesPath = "../../deploy/kubernetes/rbac-nodes.yaml"

// onALostNode returns the ID of a Pod that is being deleted on a node whose kubelet does
// not answer.
func (l *lab) onALostNode(t *testing.T) string {
	t.Helper()
	id, err := l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	l.server.Change(t, namespace, providers.NameFromUID("u"), func(pod *corev1.Pod) {
		pod.Spec.NodeName = kubeapi.LostNode
	})
	require.NoError(t, l.Delete(t.Context(), id))
	return id
}

// later sets the provider's clock to long after the grace period.
func (l *lab) later() {
	kubernetes.At(l.Provider.(*kubernetes.Provider), func() time.Time { return time.Now().Add(time.Hour) })
}

func (l *lab) deleting(t *testing.T, id string) bool {
	t.Helper()
	found, err := l.Get(t.Context(), id)
	require.NoError(t, err, "it is there until it is gone")
	require.Equal(t, providers.StateTerminated, found.State)
	return found.Deleting
}

func TestAPodOnANodeThatIsGoneIsForced(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.server.Grant(kubeapi.Rules(t, nodesPath, installation))
	id := l.onALostNode(t)
	require.True(t, l.deleting(t, id))
	before := len(l.server.Calls())
	require.NoError(t, l.Delete(t.Context(), id))
	require.Equal(t, []string{"get pods"}, l.server.Calls()[before:], "within its grace period nothing is repeated")
	l.later()
	require.False(t, l.deleting(t, id), "another delete is worth its call now")
	require.NoError(t, l.Delete(t.Context(), id))
	_, err := l.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrNotFound)
}

func TestAPodOnASilentNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.server.Grant(kubeapi.Rules(t, nodesPath, installation))
	l.server.Put(t, kubeapi.Action{Resource: "nodes", Name: kubeapi.LostNode},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: kubeapi.LostNode}})
	id := l.onALostNode(t)
	l.later()
	require.NoError(t, l.Delete(t.Context(), id))
	l.deleting(t, id)
}

func TestWithoutTheRightToReadNodesItIsWaitedFor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.onALostNode(t)
	l.later()
	require.NoError(t, l.Delete(t.Context(), id))
	l.deleting(t, id)
}

func TestDeleteTakesNoPodThatNoFleetHasMade(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	pod := marked(request("u"))
	pod.Labels = map[string]string{"app": "web"}
	l.server.Put(t, kubeapi.PodIn(namespace, pod.Name), pod)
	err := l.Delete(t.Context(), namespace+"/"+pod.Name)
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.Nil(t, l.server.Pods(t)[0].DeletionTimestamp)
}

// Between the look and the delete the Pod was made anew.
func TestDeleteTakesTheVeryPodThatItHasSeen(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id, err := l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	swap := kubeapi.Once(kubeapi.Do(func() {
		l.server.Change(t, namespace, providers.NameFromUID("u"), func(pod *corev1.Pod) { pod.UID = "another" })
	}))
	l.server.Break(kubeapi.Only("delete", "pods", swap))
	require.NoError(t, l.Delete(t.Context(), id))
	require.Nil(t, l.server.Pods(t)[0].DeletionTimestamp)
}
