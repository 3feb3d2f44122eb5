package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFewPrepareAtOnceForEachProvider(t *testing.T) {
	t.Parallel()
	var at turns
	var leave func()
	for range preparingAtOnce {
		var ok bool
		leave, ok = at.enter("a")
		require.True(t, ok)
	}
	_, ok := at.enter("a")
	require.False(t, ok)
	_, ok = at.enter("b")
	require.True(t, ok, "each provider has turns of its own")
	leave()
	_, ok = at.enter("a")
	require.True(t, ok)
}
