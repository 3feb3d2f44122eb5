package terminal_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/egressfleet/egressfleet/starter/terminal"
)

// pseudo returns a terminal of so many columns.
func pseudo(t *testing.T, columns uint16) *os.File {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = far.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	near, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = near.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(near.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24}))
	return near
}

func TestATerminalTellsItsWidthAndTakesColours(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		columns uint16
		env     map[string]string
		want    terminal.Screen // without its height
	}{
		"as it is":             {132, nil, terminal.Screen{Width: 132, Colour: true}},
		"one without a width":  {0, nil, terminal.Screen{Width: 80, Colour: true}},
		"NO_COLOR":             {100, map[string]string{"NO_COLOR": "1"}, terminal.Screen{Width: 100}},
		"NO_COLOR of nothing":  {100, map[string]string{"NO_COLOR": ""}, terminal.Screen{Width: 100, Colour: true}},
		"one that is too dumb": {100, map[string]string{"TERM": "dumb"}, terminal.Screen{Width: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := terminal.Of(pseudo(t, c.columns), func(key string) string { return c.env[key] })
			if c.columns > 0 {
				require.Equal(t, 24, got.Height)
			}
			got.Height = 0
			require.Equal(t, c.want, got)
		})
	}
}
