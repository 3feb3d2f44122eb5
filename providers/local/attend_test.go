package local

import (
	"context"
	"errors"
	"os"
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

// late is a context that ends while its call is held up: after the first look at it.
type late struct {
	context.Context
	looks *int
}

func (l late) Err() error {
	if *l.looks++; *l.looks == 1 {
		return nil
	}
	return l.Context.Err()
}

func lateContext(t *testing.T) context.Context {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	return late{ended, new(int)}
}

// Its caller has gone, and by now the name may be that of a later instance.
func TestADeleteThatComesTooLateRemovesNothing(t *testing.T) {
	t.Parallel()
	p, _ := newFaulty(t, nil, linuxRange)
	folder := p.store.folder("proxy-a")
	require.NoError(t, os.MkdirAll(folder, folderMode))
	require.ErrorIs(t, p.delete(lateContext(t), formatID("proxy-a")), context.Canceled)
	require.DirExists(t, folder)
	require.NoError(t, p.delete(t.Context(), formatID("proxy-a")), "the lock was given back")
	require.NoDirExists(t, folder)
}

func TestACreateThatComesTooLateMakesNothing(t *testing.T) {
	t.Parallel()
	p, machine := newFaulty(t, nil, linuxRange)
	err := p.create(lateContext(t), providers.CreateRequest{Name: "proxy-a", UID: "u", Installation: "test", Port: 3128})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, machine.listens)
	require.NoDirExists(t, p.store.folder("proxy-a"))
}
