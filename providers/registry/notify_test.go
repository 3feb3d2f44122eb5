package registry_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/registry"
)

// never leaves what is seen to the events.
const never = 24 * time.Hour

// watching follows the bench's file by the operating system's own events.
func (b *bench) watching() {
	b.t.Helper()
	w, err := registry.NewWatcher()
	require.NoError(b.t, err)
	ended := make(chan struct{})
	go func() { defer close(ended); b.live.Follow(b.t.Context(), w) }()
	b.t.Cleanup(func() { <-ended; require.NoError(b.t, w.Close()) })
}

// next is the next load that brought news.
func (b *bench) next() registry.Outcome {
	b.t.Helper()
	select {
	case o := <-b.heard:
		return o
	case <-time.After(time.Minute): // generous: the machine may be busy
		require.FailNow(b.t, "the change was not seen")
		return registry.Outcome{}
	}
}

// mount makes a folder as the kubelet does: each file is a link into ..data, which is
// a link to the folder of now and is swapped by a rename.
func (b *bench) mount(volume, version string, files map[string]string) {
	b.t.Helper()
	dir := b.path(volume)
	require.NoError(b.t, os.MkdirAll(filepath.Join(dir, version), 0o750))
	for name, text := range files {
		require.NoError(b.t, os.WriteFile(filepath.Join(dir, version, name), []byte(text), 0o600))
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			require.ErrorIs(b.t, err, os.ErrExist)
		}
	}
	require.NoError(b.t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
	require.NoError(b.t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
}

func TestAMountedConfigurationAndItsSecretAreFollowedOverEverySwap(t *testing.T) {
	t.Parallel()
	b := newPolledBench(t, never)
	one := `providers: [{name: a, type: vault, vault: {tokenFile: ` + b.path("secret/token") + `}}]`
	b.mount("secret", "..v1", map[string]string{"token": "token-1"})
	b.mount("config", "..v1", map[string]string{"providers.yaml": one})
	require.NoError(t, os.Symlink("config/providers.yaml", b.path("providers.yaml")))
	require.NoError(t, b.live.Load(t.Context()))
	require.Equal(t, []string{"a"}, b.next().Added)
	b.watching()
	for i, version := range []string{"..v2", "..v3", "..v4"} {
		token := "token-" + version
		b.mount("secret", version, map[string]string{"token": token})
		require.Equal(t, []string{"a"}, b.next().Changed, "swap %d", i)
		require.Equal(t, token, b.one("a").token)
	}
	b.mount("secret", "..v5", map[string]string{"token": "garbage"})
	require.ErrorContains(t, b.next().Err, "does not hold a token")
	require.Equal(t, "token-..v4", b.one("a").token)
	b.mount("secret", "..v6", map[string]string{"token": "token-6"})
	require.NoError(t, b.next().Err)
	require.Equal(t, "token-6", b.one("a").token)
	b.mount("config", "..v2", map[string]string{"providers.yaml": one + "\n"})
	require.Equal(t, []string{"a"}, b.next().Kept)
	b.mount("config", "..v3", map[string]string{"providers.yaml": two})
	require.Equal(t, []string{"b"}, b.next().Added)
}

func TestEveryWayToChangeAFileIsSeen(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bench){
		"written in place": func(b *bench) { b.write("providers.yaml", two) },
		"renamed over": func(b *bench) {
			b.write("new", two)
			require.NoError(b.t, os.Rename(b.path("new"), b.path("providers.yaml")))
		},
		"as an editor does, with a backup": func(b *bench) {
			require.NoError(b.t, os.Rename(b.path("providers.yaml"), b.path("providers.yaml~")))
			b.write("providers.yaml", two)
		},
		"as a link from now on": func(b *bench) {
			b.write("elsewhere", two)
			require.NoError(b.t, os.Remove(b.path("providers.yaml")))
			require.NoError(b.t, os.Symlink("elsewhere", b.path("providers.yaml")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPolledBench(t, never)
			b.configure(`providers: [{name: a, type: vault}]`)
			b.watching()
			change(b)
			o := b.next()
			for o.Err != nil { // somebody looked in the middle of it
				o = b.next()
			}
			require.Equal(t, []string{"b"}, o.Added)
		})
	}
}
