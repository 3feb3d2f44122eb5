package kubernetes_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

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
