package program

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// started is a shell that has said "up".
func started(t *testing.T, script string) *Program {
	t.Helper()
	p := New(t.TempDir(), "shell", "/bin/sh", "-c", script)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(p.log)
		return err == nil && strings.Contains(string(text), "up")
	}, time.Minute, 5*time.Millisecond)
	return p
}

// waiting is what a shell does whose traps are to be run at once.
const waiting = "; echo up; while :; do sleep 0.01; done"

func TestAProgramThatEndsBadlyAfterSIGTERMIsAnError(t *testing.T) {
	t.Parallel()
	_, err := started(t, "trap 'exit 0' TERM"+waiting).Stop()
	require.NoError(t, err)
	_, err = started(t, "trap 'echo a part would not end; exit 3' TERM"+waiting).Stop()
	require.ErrorContains(t, err, "shell: after SIGTERM it has ended with exit status 3")
	require.ErrorContains(t, err, "a part would not end")
	_, err = started(t, "echo up; exec sleep 60").Stop()
	require.ErrorContains(t, err, "signal: terminated", "it has not taken the signal")
}
