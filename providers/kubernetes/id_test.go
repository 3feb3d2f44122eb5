package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
)

func TestIDsThatAreNone(t *testing.T) {
	t.Parallel()
	p := provider(t)
	for _, id := range []string{
		"", "/", "egress", "egress/", "/x", "egress/x/y", "egress//x", "Egress/x", "egress/X", "egress/x ", "egress/a.b",
		"../x", "egress/..", "egress/x\n", "egress/-x", "egress/" + strings.Repeat("x", 64), strings.Repeat("x", 64) + "/x",
	} {
		_, err := p.Get(t.Context(), id)
		require.ErrorIs(t, err, providers.ErrPermanent, "%q", id)
		require.ErrorContains(t, err, "<namespace>/<name>")
		require.ErrorIs(t, p.Delete(t.Context(), id), providers.ErrPermanent, "%q", id)
	}
}

// The seam takes any implementation of client-go's interface.
func TestClientGosOwnFakeStandsBehindTheSeam(t *testing.T) {
	t.Parallel()
	p := provider(t)
	pod := marked(request("u"))
	pod.UID = "1"
	client := fake.NewClientset(pod)
	kubernetes.With(p, client)
	id := namespace + "/" + pod.Name
	found, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "u", found.UID)
	require.NoError(t, p.Delete(t.Context(), id))
	_, err = client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	require.Error(t, err)
	_, err = p.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrNotFound)
}
