package main

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/starter/fleet"
)

func TestABusyFleetIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		busy := fmt.Errorf("%w: no worker answers", fleet.ErrUnavailable)
		require.NoError(t, answered(t.Context(), func() error {
			if asked++; asked < 3 {
				return busy
			}
			return nil
		}))
		require.Equal(t, 3, asked)
		require.ErrorIs(t, answered(t.Context(), func() error { return busy }), fleet.ErrUnavailable, "not for ever")

		refused := errors.New("refused")
		asked = 0
		require.ErrorIs(t, answered(t.Context(), func() error { asked++; return refused }), refused)
		require.Equal(t, 1, asked)
	})
}
