package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestAProviderThatDoesNotReturnGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ever := make(chan struct{})
		defer close(ever)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := outlive(ctx, "deaf", func(context.Context) (string, error) { <-ever; return "late", nil })
		require.ErrorIs(t, r.err, providers.ErrTransient)
		require.ErrorContains(t, r.err, "does not return")
		require.Empty(t, r.out)
	})
}

func TestAnAnswerWithinTheGraceCounts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := outlive(ctx, "slow", func(ctx context.Context) (string, error) { <-ctx.Done(); return "in time", nil })
	require.NoError(t, r.err)
	require.Equal(t, "in time", r.out)
}
