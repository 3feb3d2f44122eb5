//go:build linux

package kubelab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARunRemovesWhatKilledOnesLeftAndNothingElse(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "kubelab")
	living, done, err := newScratch(base)
	require.NoError(t, err)
	killed := filepath.Join(base, "run-of-before")
	require.NoError(t, os.MkdirAll(filepath.Join(killed, "node-a", "containerd"), 0o700))

	another, doneToo, err := newScratch(base)
	require.NoError(t, err)
	require.NotEqual(t, living, another)
	require.NoDirExists(t, killed)
	require.DirExists(t, living)
	require.NoError(t, doneToo())
	require.NoError(t, done())
	left, err := filepath.Glob(filepath.Join(base, "run-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
