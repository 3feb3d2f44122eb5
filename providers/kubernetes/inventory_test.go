package kubernetes_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

func (l *lab) fill(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		_, err := l.Create(t.Context(), request(fmt.Sprint("u", i)))
		require.NoError(t, err)
	}
}

func TestPagesAreFollowed(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *kubernetes.Config) { cfg.MachineTypes = nil })
	l.fill(t, 7)
	l.plant(t)
	l.server.Pages(3)
	before := len(l.server.Calls())
	found, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 7)
	require.Len(t, l.server.Calls()[before:], 3)
	seen := map[string]bool{}
	for _, i := range found {
		seen[i.UID] = true
	}
	require.Len(t, seen, 7)
}

// expiring lets the second page expire, n times.
func expiring(n int) kubeapi.Fault {
	gone := apierrors.NewResourceExpired("The provided continue parameter is too old")
	return kubeapi.Only("list", "pods", func(w http.ResponseWriter, r *http.Request, a kubeapi.Action) bool {
		if r.URL.Query().Get("continue") == "" || n == 0 {
			return false
		}
		n--
		return kubeapi.Answer(gone)(w, r, a)
	})
}

func TestExpiredPagesBeginAnew(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *kubernetes.Config) { cfg.MachineTypes = nil })
	l.fill(t, 5)
	l.server.Pages(3)
	heal := l.server.Break(expiring(2))
	found, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 5, "never the first pages alone, and none of them twice")
	heal()
	l.server.Break(expiring(100))
	found, err = l.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrTransient)
	require.Empty(t, found)
}

func TestEveryNamespaceIsListed(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *kubernetes.Config) { cfg.FormerNamespaces = []string{"egress-old"} })
	old := marked(request("old"))
	old.Namespace = "egress-old"
	l.server.Put(t, kubeapi.PodIn("egress-old", old.Name), old)
	far := request("far")
	far.Placement.MachineType = farType
	id, err := l.Create(t.Context(), far)
	require.NoError(t, err)
	require.Equal(t, elsewhere+"/"+far.Name, id)
	l.fill(t, 1)
	found, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 3)
	inventory, err := l.Provider.(*kubernetes.Provider).Inventory(t.Context())
	require.NoError(t, err)
	require.Empty(t, inventory.Omitted)
	l.server.Break(kubeapi.OnlyIn("egress-old", kubeapi.CutOff))
	inventory, err = l.Provider.(*kubernetes.Provider).Inventory(t.Context())
	require.NoError(t, err)
	require.Len(t, inventory.Instances, 2)
	require.Equal(t, []string{"egress-old"}, inventory.Omitted)
}

// A read with a resource version could be answered from a cache that is behind.
func TestReadsAskTheStore(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.server.Break(func(_ http.ResponseWriter, r *http.Request, a kubeapi.Action) bool {
		require.NotContains(t, r.URL.RawQuery, "resourceVersion", a.Verb)
		return false
	})
	id, err := l.Create(t.Context(), request("u"))
	require.NoError(t, err)
	_, err = l.Get(t.Context(), id)
	require.NoError(t, err)
	_, err = l.ListByTag(t.Context())
	require.NoError(t, err)
}

func TestTheServerFiltersTheListing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var selectors []string
	l.server.Break(kubeapi.Only("list", "pods", func(_ http.ResponseWriter, r *http.Request, _ kubeapi.Action) bool {
		selectors = append(selectors, r.URL.Query().Get("labelSelector"))
		return false
	}))
	_, err := l.ListByTag(t.Context())
	require.NoError(t, err)
	want := "proxy-operator-installation=production,proxy-operator-managed=true"
	require.Equal(t, []string{want, want}, selectors)
}
