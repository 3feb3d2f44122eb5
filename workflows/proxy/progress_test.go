package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/egressfleet/egressfleet/providers"
)

func TestProgressOfAProviderIsAHeartbeat(t *testing.T) {
	sc := newScene(t)
	beats := make(chan string, 100)
	sc.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var text string
		if err := details.Get(&text); err == nil {
			beats <- text
		}
	})
	sc.backend.Before(providers.OpCreate, func(ctx context.Context) error {
		providers.Progress(ctx, 3, 10, "bytes of the image")
		return nil
	})
	sc.deleteAt(time.Hour)
	sc.runs()
	require.NotEmpty(t, beats)
	require.Equal(t, "bytes of the image: 3 of 10", <-beats)
}
