package fleet

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheGateLetsAFewThroughAtATime(t *testing.T) {
	t.Parallel()
	g := newGate()
	var leaves []func()
	for range atOnce {
		leave, err := g.enter(t.Context(), "a")
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.enter(ended, "a")
	require.ErrorIs(t, err, context.Canceled, "there is no place")
	other, err := g.enter(t.Context(), "b")
	require.NoError(t, err, "another workflow has places of its own")

	entered := make(chan func())
	go func() {
		leave, _ := g.enter(context.WithoutCancel(t.Context()), "a")
		entered <- leave
	}()
	leaves[0]()
	(<-entered)() // the place that was given back was taken
	for _, leave := range append(leaves[1:], other) {
		leave()
	}
	require.Empty(t, g.lanes, "nothing is kept of who has left")
}
