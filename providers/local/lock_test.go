package local_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// hold takes the lock of a folder, as another worker on the same dir does.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	dir, err := os.Open(path)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(dir.Fd()), syscall.LOCK_EX))
	release = func() { _ = dir.Close() }
	t.Cleanup(release)
	return release
}

func TestALockThatSomebodyHolds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	held := l.running("held")
	for name, c := range map[string]struct {
		path string
		call func(ctx context.Context) error
	}{
		"Create waits for the instance": {
			l.path(request("held").Name, ""),
			func(ctx context.Context) error { _, err := l.Create(ctx, request("held")); return err },
		},
		"Delete waits for the instance": {
			l.path(request("held").Name, ""),
			func(ctx context.Context) error { return l.Delete(ctx, held.ID) },
		},
		"Create waits for the addresses": {
			l.root(),
			func(ctx context.Context) error { _, err := l.Create(ctx, request("new")); return err },
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := hold(t, c.path)
			ctx, cancel := context.WithCancel(t.Context())
			answered := make(chan error, 1)
			go func() { answered <- c.call(ctx) }()
			select {
			case err := <-answered:
				require.Fail(t, "it did not wait", "%v", err)
			case <-time.After(100 * time.Millisecond):
			}
			require.Equal(t, providers.StateRunning, l.get(held.ID).State, "a Get does not wait")
			listed, err := l.ListByTag(t.Context())
			require.NoError(t, err)
			require.Len(t, listed, 1, "nor does a listing")

			cancel()
			err = <-answered
			require.ErrorIs(t, err, providers.ErrTransient)
			require.ErrorIs(t, err, context.Canceled)
			release()
		})
	}
	require.Equal(t, []string{request("held").Name}, l.folders(), "what was called off leaves nothing")
}
