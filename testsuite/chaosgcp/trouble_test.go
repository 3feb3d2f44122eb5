package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

func TestTroubleIsCounted(t *testing.T) {
	t.Parallel()
	tr := newTrouble(1)
	require.Len(t, tr.missing(), len(kinds()))
	k := kinds()[0]
	hits, strikes := 0, tr.strike(k)
	for range 10_000 {
		if strikes(gcefake.Call{}) {
			hits++
		}
	}
	require.InDelta(t, 100*k.percent, hits, 80)
	require.Len(t, tr.missing(), len(kinds())-1)
	require.Contains(t, tr.String(), k.name)
}
