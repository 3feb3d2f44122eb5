//go:build tools

package runbooks_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// replays types what is done in a checkout, in a copy of this one: what is written there
// is no file of this tree.
func (s *session) replays(names []string) {
	s.t.Helper()
	const recorded = "workflows/proxy/testdata/replay"
	checkout := s.path("checkout")
	require.NoError(s.t, checkedOut(s.root, checkout))
	require.NoError(s.t, os.MkdirAll(filepath.Join(checkout, recorded), 0o700))
	require.NoError(s.t, os.Symlink(filepath.Join(s.root, "bin"), filepath.Join(checkout, "bin")))
	// As `make build` compiles: what is in another folder is then compiled already.
	said := s.types("cd checkout\nexport GOFLAGS=\"${GOFLAGS:-} -trimpath\"\n" +
		s.block(upgrade, "TestRecordedHistoriesReplay") + "cd ..")
	require.NotEmpty(s.t, names)
	for _, name := range names {
		require.Contains(s.t, said, "--- PASS: TestRecordedHistoriesReplay/own-proxy-default-"+name+".json")
	}
	require.Equal(s.t, len(names), strings.Count(said, "--- PASS: TestRecordedHistoriesReplay/own-"), said)
	left, err := os.ReadDir(filepath.Join(checkout, recorded))
	require.NoError(s.t, err)
	require.Empty(s.t, left, "specs in plain text")
}

// checkedOut copies what Go compiles.
func checkedOut(from, to string) error {
	left := []string{"bin", "dist", "docs", "testdata", "node_modules"}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && rel != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(left, entry.Name())):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o600)
	})
}
