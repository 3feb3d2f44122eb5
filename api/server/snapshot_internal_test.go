package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALargeFleetHasTimeToBeListed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		loaded bool
		took   time.Duration
		want   time.Duration
	}{
		"nothing is known yet":             {false, 0, 30 * time.Second},
		"a small fleet":                    {true, 20 * time.Millisecond, 4 * time.Second},
		"a large one":                      {true, 3 * time.Second, 9 * time.Second},
		"one that is far too slow":         {true, 25 * time.Second, 30 * time.Second},
		"a clock that went back meanwhile": {true, -time.Hour, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, within(c.loaded, c.took))
		})
	}
}
