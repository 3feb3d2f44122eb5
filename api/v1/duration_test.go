package v1_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func TestADurationOrItsDefault(t *testing.T) {
	t.Parallel()
	for text, want := range map[v1.Duration]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "0s": 0,
		"": time.Hour, "soon": time.Hour, "30": time.Hour,
	} {
		require.Equal(t, want, text.Or(time.Hour), "%q", text)
	}
}
