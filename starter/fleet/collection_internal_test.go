package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

func TestACollectionIsToldAsNumbersAndAReason(t *testing.T) {
	t.Parallel()
	r := gc.Result{Sweeps: []gc.Sweep{
		{SweepReport: activities.SweepReport{
			Provider: "a", Listed: 9, Living: 4, Young: 1, Doubts: 1, Convicts: 3, Deleted: 2,
			Findings: []activities.Finding{{ID: "x", Error: "no"}, {ID: "y"}},
		}},
		{SweepReport: activities.SweepReport{Provider: "b", Refused: "too many"}},
		{SweepReport: activities.SweepReport{Provider: "c"}, Fault: &activities.Fault{Text: "it hangs"}},
	}}
	require.Equal(t, []v1.Collected{
		{Provider: "a", Listed: 9, Living: 4, Young: 1, Doubts: 1, Orphans: 3, Deleted: 2, Failed: 1},
		{Provider: "b", Note: "too many"},
		{Provider: "c", Note: "it hangs"},
	}, collected(r))
}
