//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

func TestThePagesHaveWhatIsTyped(t *testing.T) {
	t.Parallel()
	root, err := devserver.Root()
	require.NoError(t, err)
	for _, c := range []struct {
		page, section string
		n             int
		has           string
	}{
		{production, backups, 0, "pg_dump"},
		{lostDatabase, restored, putBack, "pg_restore"},
		{lostDatabase, restored, pauseCollection, "bin/starter gc pause"},
		{lostDatabase, restored, lookAndAdopt, "bin/starter adopt --orphans --yes"},
		{lostDatabase, restored, resumeCollection, "bin/starter gc resume"},
	} {
		text, err := os.ReadFile(filepath.Join(root, c.page))
		require.NoError(t, err)
		line, err := typed(string(text), c.section, c.n)
		require.NoError(t, err)
		require.Contains(t, line, c.has)
	}
}

func TestWhatAPageLacksIsSaid(t *testing.T) {
	t.Parallel()
	const page = "# P\n\n## A\n\n```\nno\n```\n\n```sh\none\n```\n\n## B\n\n```sh\ntwo\n```\n"
	line, err := typed(page, "A", 0)
	require.NoError(t, err)
	require.Equal(t, "one\n", line)
	_, err = typed(page, "A", 1)
	require.ErrorContains(t, err, `section "A" lacks blocks`)
	_, err = typed(page, "C", 0)
	require.ErrorContains(t, err, `no section "C"`)
}
