package realserver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// TestADeleteEndsAFetch has an image on its way for as long as anybody wants it.
func TestADeleteEndsAFetch(t *testing.T) {
	l := newLab(t, quick())
	l.throttle = 100 * time.Millisecond // a cancel reaches an activity with its heartbeat
	l.backend.Unprepare("image debian-12 on host-a")
	begun, ended := make(chan struct{}), make(chan struct{})
	l.backend.Before(providers.OpPrepare, func(ctx context.Context) error {
		close(begun)
		defer close(ended)
		<-ctx.Done()
		return ctx.Err()
	})
	l.work()
	l.apply("make", spec)
	<-begun
	require.Eventually(t, func() bool {
		shown, _ := l.get().Status.Condition(v1.ConditionProvisioned)
		return shown.Message == "image debian-12 on host-a is being fetched; the instance is created once it is there"
	}, soon, tick)
	l.deleted()
	<-ended
	require.Zero(t, l.backend.Calls(providers.OpDelete), "nothing was made")
}

func TestAFetchedImageIsUsed(t *testing.T) {
	l := newLab(t, quick())
	l.backend.Unprepare("image debian-12 on host-a")
	l.born()
	require.Equal(t, 2, l.backend.Calls(providers.OpCreate))
	require.Equal(t, 1, l.backend.Calls(providers.OpPrepare))
	l.deleted()
}
