package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// folder is a temporary one by its real path: the system's own may be behind links.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func TestThePlacesOfAPathAreItsLinksAndItself(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	for _, sub := range []string{"mount/..v1", "elsewhere"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o750))
	}
	for _, file := range []string{"mount/..v1/key", "elsewhere/plain"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
	}
	for link, target := range map[string]string{
		"mount/..data": "..v1", "mount/key": "..data/key", // as a Secret is mounted
		"far": filepath.Join(dir, "elsewhere", "plain"), "way": "elsewhere", "loop": "loop", "broken": "nowhere/x",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	for path, want := range map[string][]string{
		"elsewhere/plain": {"elsewhere/plain"},
		"mount/key":       {"mount/key", "mount/..data", "mount/..v1/key"},
		"far":             {"far", "elsewhere/plain"},
		"way/plain":       {"way", "elsewhere/plain"},
		"way/gone":        {"way", "elsewhere/gone"},
		"broken":          {"broken", "nowhere"},
		"nowhere/a/b":     {"nowhere"},
	} {
		var places []string
		for _, place := range placesOf(filepath.Join(dir, path)) {
			places = append(places, strings.TrimPrefix(place, dir+"/"))
		}
		require.Equal(t, want, places, path)
	}
	require.Len(t, placesOf(filepath.Join(dir, "loop")), mostLinks, "a loop ends")
}
