package providers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestProgressReachesTheInnermostListener(t *testing.T) {
	t.Parallel()
	type step struct {
		done, total int64
		what        string
	}
	var outer, inner []step
	listen := func(to *[]step) providers.ProgressFunc {
		return func(done, total int64, what string) { *to = append(*to, step{done, total, what}) }
	}
	ctx := providers.WithProgress(t.Context(), listen(&outer))
	providers.Progress(ctx, 1, 0, "asking")
	providers.Progress(providers.WithProgress(ctx, listen(&inner)), 2, 10, "bytes of the image")
	require.Equal(t, []step{{1, 0, "asking"}}, outer)
	require.Equal(t, []step{{2, 10, "bytes of the image"}}, inner)
}

func TestProgressWithoutAListenerDoesNothing(t *testing.T) {
	t.Parallel()
	require.NotPanics(t, func() { providers.Progress(t.Context(), 1, 2, "bytes") })
}
