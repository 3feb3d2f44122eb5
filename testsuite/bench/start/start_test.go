package start

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFleetIsReadyAtItsLastLineOnly(t *testing.T) {
	t.Parallel()
	said, is := await(strings.NewReader("starting the worker …\n" + ready + "\nmore\n"))
	require.True(t, is)
	require.Equal(t, "starting the worker …\n", said)
	said, is = await(strings.NewReader("starting the worker …\nport 7233 is in use, and not " + ready + "\n"))
	require.False(t, is)
	require.Contains(t, said, "in use", "why is told")
}
