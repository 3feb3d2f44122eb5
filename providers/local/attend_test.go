package local

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestAttendLeavesOnlyWhatHangs(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	own := errors.New("the call's own")
	const short, long = time.Nanosecond, time.Minute
	for name, c := range map[string]struct {
		ctx      context.Context
		patience time.Duration
		call     func() (string, error)
		value    string
		says     string
	}{
		"a result comes back":          {t.Context(), short, func() (string, error) { return "a", nil }, "a", ""},
		"an error comes back":          {t.Context(), short, func() (string, error) { return "", own }, "", own.Error()},
		"who notices the end is heard": {ended, long, func() (string, error) { return "a", own }, "a", own.Error()},
		"a call that hangs is left": {
			ended, short, func() (string, error) { <-hang; return "a", nil }, "", "the disk does not answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := attend(c.ctx, c.patience, c.call)
			require.Equal(t, c.value, value)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, providers.ErrTransient, classify(err))
		})
	}
}

// Its caller has gone, and what it was about to do may be wrong by now.
func TestALockThatComesTooLateIsGivenBack(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := lockDir(ended, folder)
	require.ErrorIs(t, err, context.Canceled)
	l, err := lockDir(t.Context(), folder)
	require.NoError(t, err, "nobody holds it")
	l.release()
}
