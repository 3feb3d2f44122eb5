package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "below", "dev")
	first, err := openHome(dir)
	require.NoError(t, err)
	_, err = openHome(dir)
	require.ErrorContains(t, err, `EGRESSFLEET_DEV_DIR: "`+dir+`" is in use by another "starter dev": process `)
	first.close()
	second, err := openHome(dir)
	require.NoError(t, err)
	second.close()
}

func TestADirectoryOfSomebodyElseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, err := openHome(dir)
	require.NoError(t, err, "an empty one is nobody's")
	empty.close()
	require.NoError(t, os.Remove(filepath.Join(dir, lockFile)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600))
	for name, refused := range map[string]func() error{
		"dev":   func() error { return new(app).dev(t.Context(), devSettings{dir: dir}) },
		"clean": func() error { return new(app).devClean(t.Context(), devSettings{dir: dir}) },
		"root":  func() error { return new(app).devClean(t.Context(), devSettings{dir: "/"}) },
	} {
		require.ErrorContains(t, refused(), "holds files and was not made by", name)
	}
	require.FileExists(t, filepath.Join(dir, "thesis.txt"))
	require.NoFileExists(t, filepath.Join(dir, lockFile))
}

func TestADirectoryInThePlaceOfTheLockIsNotOurs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, lockFile), 0o700))
	_, err := openHome(dir)
	require.ErrorContains(t, err, "was not made by")
}

func TestARunWithoutItsProgramsSaysWhatBuildsThem(t *testing.T) {
	t.Parallel()
	a := &app{Streams: Streams{Out: discard{}}}
	s := devSettings{dir: t.TempDir(), binaries: t.TempDir()}
	err := a.dev(t.Context(), s)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, filepath.Join(s.binaries, "temporal"))
	require.ErrorContains(t, err, `"make run" builds it`)
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// clean runs "dev clean" on a directory.
func clean(t *testing.T, dir string) (out, errOut string, code int) {
	t.Helper()
	t.Setenv("EGRESSFLEET_DEV_DIR", dir)
	return run(t.Context(), nil, "", "dev", "clean")
}

func TestCleanEndsInstancesAndRemovesTheState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dev")
	home, err := openHome(dir)
	require.NoError(t, err)
	set, err := devProviders(t.Context(), devSettings{}, home)
	require.NoError(t, err)
	local, ok := set.Lookup(devProvider)
	require.True(t, ok)
	id, err := local.Create(t.Context(), providers.CreateRequest{
		Name: providers.NameFromUID("u"), UID: "u", Attempt: 1, Installation: devInstallation,
		Owner: "default/a", Port: 3128,
	})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(home.path(logDir), 0o700))
	require.NoError(t, os.WriteFile(home.path(logDir, "worker.log"), nil, 0o600))
	require.NoError(t, os.WriteFile(home.path(databaseFile), nil, 0o600))

	_, errOut, code := clean(t, dir)
	require.Equal(t, exitFailure, code, "a run holds it")
	require.Contains(t, errOut, "is in use by another")
	found, err := local.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, providers.StateRunning, found.State)

	home.close()
	out, errOut, code := clean(t, dir)
	require.Empty(t, errOut)
	require.Zero(t, code)
	require.Equal(t, "removed 1 instances and the state in "+dir+"\n", out)
	require.NoDirExists(t, dir)

	out, _, code = clean(t, dir)
	require.Zero(t, code)
	require.Equal(t, "nothing to clean: there is no "+dir+"\n", out)
}

func TestCleanTouchesNothingThatNoRunHasMade(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	home, err := openHome(dir)
	require.NoError(t, err)
	home.close()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "thesis.txt"), nil, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, logDir)))

	out, _, code := clean(t, dir)
	require.Zero(t, code)
	require.Contains(t, out, "the directory stays")
	require.FileExists(t, filepath.Join(dir, "thesis.txt"))
	require.FileExists(t, filepath.Join(outside, "thesis.txt"))
	require.NoFileExists(t, filepath.Join(dir, logDir))
}

func TestADirectoryThatOthersCouldReadIsClosedToThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	home, err := openHome(dir)
	require.NoError(t, err)
	defer home.close()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
