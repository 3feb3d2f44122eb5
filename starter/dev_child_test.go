package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startPlayer starts the test binary in a role and waits until it is up.
func startPlayer(t *testing.T, role string) (*child, context.Context) {
	t.Helper()
	alive, died := context.WithCancelCause(t.Context())
	c, err := start(player(role, filepath.Join(t.TempDir(), "log")), died)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // only when the test has failed; its own child otherwise ended
		<-c.ended
	})
	if role != playDead {
		logged(t, c.log, "up\n")
	}
	return c, alive
}

// logged waits until a log has a text, and returns the log.
func logged(t *testing.T, log, want string) string {
	t.Helper()
	var text []byte
	require.Eventually(t, func() bool {
		text, _ = os.ReadFile(log)
		return strings.Contains(string(text), want)
	}, soon, tick)
	return string(text)
}

func TestAChildThatDiesEndsTheRunWithItsLastWords(t *testing.T) {
	t.Parallel()
	c, alive := startPlayer(t, playDead)
	<-alive.Done()
	require.EqualError(t, context.Cause(alive),
		"the dead has died (exit status 3); the end of "+c.log+":\n  first line\n  last words")
	<-c.ended
	require.True(t, c.gone())
}

func TestAChildThatIsStoppedIsNotDead(t *testing.T) {
	t.Parallel()
	c, alive := startPlayer(t, playPolite)
	require.False(t, c.gone())
	c.stop(t.Context(), soon)
	require.True(t, c.gone())
	require.Zero(t, c.cmd.ProcessState.ExitCode())
	require.NoError(t, alive.Err())
}

func TestADeafChildIsKilledAfterItsGrace(t *testing.T) {
	t.Parallel()
	c, alive := startPlayer(t, playDeaf)
	c.stop(t.Context(), 50*time.Millisecond)
	require.Equal(t, "signal: killed", c.cmd.ProcessState.String())
	require.NoError(t, alive.Err())
}

func TestASecondSignalKillsAtOnce(t *testing.T) {
	t.Parallel()
	c, _ := startPlayer(t, playDeaf)
	hurry, now := context.WithCancel(t.Context())
	go c.stop(hurry, time.Hour)
	logged(t, c.log, "heard")
	require.False(t, c.gone())
	now()
	<-c.ended
	require.Equal(t, "signal: killed", c.cmd.ProcessState.String())
}

func TestAChildThatCannotStartIsNamed(t *testing.T) {
	t.Parallel()
	p := player(playPolite, filepath.Join(t.TempDir(), "log"))
	p.path = "/nowhere/worker"
	_, err := start(p, func(error) { t.Error("it never lived") })
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "the polite: ")
}

func TestTheLogOfTheRunBeforeIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "worker.log")
	for _, words := range []string{"first", "second", "third"} {
		f, err := freshLog(path)
		require.NoError(t, err)
		_, err = f.WriteString(words)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	before, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	require.Equal(t, "third second", string(now)+" "+string(before))
}

func TestTheTailOfALongLogBeginsWithAWholeLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	line := strings.Repeat("x", 99) + "\n"
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat(line, 100)), 0o600))
	got := tail(path)
	require.Equal(t, strings.TrimSuffix(strings.Repeat("  "+line, tailBytes/100-1), "\n"), got)
	require.Contains(t, tail(path+"x"), "no such file")
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	dead := &deadError{name: "the worker", how: "exit status 1", log: "l", tail: "  t"}
	step := errors.New("starting the worker: too slow")
	tests := map[string]struct {
		died   error
		signal bool
		failed error
		want   string
	}{
		"somebody ended it":               {signal: true},
		"a process died":                  {died: dead, want: "the worker has died (exit status 1)"},
		"a process died on the way up":    {died: dead, failed: step, want: "the worker has died (exit status 1)"},
		"a step failed":                   {failed: step, want: "starting the worker: too slow"},
		"somebody ended it on the way up": {signal: true, failed: step, want: "interrupted before all was up"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			alive, died := context.WithCancelCause(ctx)
			if tt.signal {
				cancel()
			}
			died(tt.died)
			r := &devRun{app: &app{Streams: Streams{Out: discard{}}}}
			err := r.verdict(ctx, alive, tt.failed)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}
