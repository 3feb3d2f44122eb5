package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/local"
)

// The guide and the package comment say what the profile says, on every axis.
func TestTheGuideTellsTheProfile(t *testing.T) {
	t.Parallel()
	guide := read(t, filepath.Join("..", "..", "docs", "providers", "local.md"))
	comment := read(t, "doc.go")
	axes := new(local.Provider).Profile().Axes()
	require.Len(t, axes, 19)
	for _, axis := range axes {
		require.Contains(t, guide, "\n| "+axis.Name+" | "+axis.Choice+" | ")
		require.Contains(t, comment, "\n//   - "+axis.Name+": "+axis.Choice)
	}
	_, table, found := strings.Cut(guide, "\n## Profile\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	require.Equal(t, len(axes)+2, strings.Count(table, "\n|"), "one row for each axis, and the head")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}
