package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
	"github.com/egressfleet/egressfleet/testsuite/fake"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

func TestAFleetComesAndGoes(t *testing.T) {
	t.Parallel()
	backend := fake.New(stage.Provider, fake.WithInstallation(Installation))
	f, err := Open(t.Context(), Options{Backends: map[string]providers.Provider{stage.Provider: backend}, Timing: proxy.DefaultTiming()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.NoError(t, f.Put(t.Context(), 0, 3, v1.ProxySpec{Provider: stage.Provider, Port: 3128}))
	require.NoError(t, f.Await(t.Context(), 3, v1.PhaseRunning))
	require.NoError(t, f.Remove(t.Context(), 0, 3))
	require.NoError(t, f.Await(t.Context(), 0, v1.PhaseRunning))
	left, err := backend.Inventory(t.Context())
	require.NoError(t, err)
	require.Empty(t, left.Instances)
}
