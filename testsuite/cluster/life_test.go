//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/program"
)

func TestWhateverHasEndedByItselfIsNamedInTheEnd(t *testing.T) {
	t.Parallel()
	started := func(argv ...string) *program.Program {
		p := program.New(t.TempDir(), "program", argv...)
		require.NoError(t, p.Start())
		t.Cleanup(func() { _ = p.Kill() })
		return p
	}
	alive := func() *program.Program { return started("/bin/sleep", "60") }
	w := &world{database: &database{Program: alive()}}
	for n := range pairs {
		w.servers[n], w.workers[n], w.apis[n] = alive(), alive(), alive()
	}
	require.NoError(t, w.alive())
	for name, of := range map[string]**program.Program{
		"database": &w.database.Program, "server": &w.servers[1], "worker": &w.workers[0], "api": &w.apis[1],
	} {
		was, ended := *of, started("/bin/false")
		require.Eventually(t, func() bool { return ended.Alive() != nil }, time.Minute, time.Millisecond)
		*of = ended
		require.ErrorIs(t, w.alive(), program.ErrEnded, name)
		*of = was
	}
}
