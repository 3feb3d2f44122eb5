package kubernetes_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/kubeapi"
)

// An API server that has just started denies everything, until it knows the roles.
func TestARightThatIsMissingCountsOnceTheServerIsReady(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const denied = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
		`"message":"User \"worker\" cannot get resource \"pods\" in API group \"\""}`
	var starting atomic.Bool
	starting.Store(true)
	l.server.Break(func(w http.ResponseWriter, _ *http.Request, a kubeapi.Action) bool {
		if a.Resource == "readyz" && !starting.Load() {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(denied))
		return true
	})
	_, err := l.Create(t.Context(), request("a"))
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorContains(t, err, "not ready")
	starting.Store(false)
	_, err = l.Create(t.Context(), request("a"))
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, "cannot get")
}

// A right that the swapped token lacks, too, is one that is missing: the server is asked
// with that token whether it is ready.
func TestARightThatASwappedTokenLacksIsMissing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	next := l.server.SwapToken()
	l.server.Unauthorized(func() { l.server.WriteKubeconfig(t, l.kubeconfig, next) })
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "some",
		errors.New(`User "worker" cannot get resource "pods" in API group ""`))
	l.server.Break(kubeapi.Only("get", "pods", kubeapi.Answer(denied)))
	_, err := l.Get(t.Context(), namespace+"/some")
	require.ErrorIs(t, err, providers.ErrPermanent)
}
