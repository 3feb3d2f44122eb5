package kubernetes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
)

// qps and burst bound a provider, whatever becomes of its credentials. A call whose turn
// would come after its deadline ends at once, and is not the API server's fault.
func TestTheAllowanceIsOneForAllCallsAndCredentials(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(cfg *kubernetes.Config) { cfg.QPS, cfg.Burst = 0.001, 2 })
	get := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := l.Get(ctx, namespace+"/none")
		return err
	}
	for range 2 {
		require.ErrorIs(t, get(), providers.ErrNotFound)
	}
	require.ErrorIs(t, get(), providers.ErrTransient)
	l.server.WriteKubeconfig(t, l.kubeconfig, l.server.SwapToken())
	err := get()
	require.ErrorIs(t, err, providers.ErrTransient, "a new token is no new allowance")
	require.ErrorContains(t, err, "qps")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, status := range l.Provider.(*kubernetes.Provider).Check(ctx) {
		require.Equal(t, providers.ReasonTimeout, status.Reason, status.Message)
	}
}
