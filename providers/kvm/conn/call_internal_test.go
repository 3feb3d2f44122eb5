package conn

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResultBeforeTheEnd: a call that has returned just when its caller leaves counts as returned.
func TestResultBeforeTheEnd(t *testing.T) {
	t.Parallel()
	h := New(Config{})
	c := &call{link: &link{calls: 1}, result: make(chan outcome, 1), gone: make(chan struct{})}
	c.result <- outcome{err: io.EOF}
	o, returned := h.abandon(c)
	require.True(t, returned)
	require.Equal(t, io.EOF, o.err)
	h.returned(c)
	require.Zero(t, h.abandoned)
	require.Equal(t, 1, c.link.calls)
}

// TestComplaintsAreBounded: a command may say what it likes.
func TestComplaintsAreBounded(t *testing.T) {
	t.Parallel()
	b := &bounded{}
	for range 3 {
		n, err := io.WriteString(b, strings.Repeat("x", 200))
		require.NoError(t, err)
		require.Equal(t, 200, n)
	}
	require.Equal(t, strings.Repeat("x", complaintMax), b.String())
}
