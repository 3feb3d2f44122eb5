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

func TestAListIsStaleWhereTheNextOneShouldBeThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age, took time.Duration
		want      bool
	}{
		"a small fleet, in time":                        {6 * time.Second, 20 * time.Millisecond, false},
		"a small fleet whose refresh hangs":             {11 * time.Second, 20 * time.Millisecond, true},
		"a fleet that takes long, as it comes":          {12 * time.Second, 12 * time.Second, false},
		"a fleet that takes long, before the next list": {25 * time.Second, 12 * time.Second, false},
		"a fleet that takes long, and longer still":     {30 * time.Second, 12 * time.Second, true},
		"a clock that went back meanwhile":              {9 * time.Second, -time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, overdue(c.age, c.took))
		})
	}
}
