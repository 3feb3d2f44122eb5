package create

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
)

// A twin that does no longer as much as a proxy fails here, and not only where somebody
// measures.
func TestAFewProxiesAndTheirTwinsComeAndGo(t *testing.T) {
	t.Parallel()
	results, err := frame.Measure(t.Context(), Part(), frame.Choice{Sizes: []int{3}, Runs: 1, Say: io.Discard})
	require.NoError(t, err)
	for _, r := range results {
		if r.Bench != "create "+ofDatabase && r.Bench != "create delete, "+ofDatabase {
			require.Positive(t, float64(r.Baseline), r.Bench)
		}
	}
}

func TestAnExistingServerIsMeasuredOnlyWhereItIsNamed(t *testing.T) {
	t.Setenv(EnvTemporal, "127.0.0.1:1")
	t.Setenv(EnvProcesses, "server=x")
	_, err := Part().Open(t.Context(), 1)
	require.ErrorContains(t, err, EnvProcesses)
}
