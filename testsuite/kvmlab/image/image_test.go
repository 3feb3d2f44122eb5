package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func fake(script string) Image { return Image{Name: "fake", script: script, args: []string{"a"}} }

// What an image is made of is its name: a script, its arguments, the files that go in.
func TestAnotherInputIsAnotherImage(t *testing.T) {
	t.Parallel()
	content := filepath.Join(t.TempDir(), "content")
	require.NoError(t, os.WriteFile(content, []byte("1"), 0o600))
	of := func(i Image) string {
		path, err := i.Path("cache")
		require.NoError(t, err)
		return path
	}
	base := Image{Name: "x", script: "s", args: []string{"a", "b"}, contents: []string{content}}
	first := of(base)
	require.Equal(t, first, of(base))
	seen := []string{first}
	for _, other := range []Image{
		{Name: "x", script: "s2", args: base.args, contents: base.contents},
		{Name: "x", script: "s", args: []string{"ab", ""}, contents: base.contents},
		{Name: "x", script: "s", args: base.args},
	} {
		require.NotContains(t, seen, of(other))
		seen = append(seen, of(other))
	}
	require.NoError(t, os.WriteFile(content, []byte("2"), 0o600))
	require.NotContains(t, seen, of(base))
}

func TestAMissingContentIsNamed(t *testing.T) {
	t.Parallel()
	_, err := Image{Name: "x", contents: []string{"/nowhere/kernel"}}.Path("cache")
	require.ErrorContains(t, err, "/nowhere/kernel")
}

func TestWhatIsNotMadeIsNotFound(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	_, err := fake("true").Find(cache)
	require.ErrorContains(t, err, "go run ./tools/kvmlab images")
	path, err := fake("true").Path(cache)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	found, err := fake("true").Find(cache)
	require.NoError(t, err)
	require.Equal(t, path, found)
}

// Who comes while another makes an image waits for that one.
func TestAnImageIsMadeOnceHoweverManyAsk(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	made := new(atomic.Int32)
	i := fake("s")
	i.by = func(_ context.Context, _, file string) error {
		made.Add(1)
		return os.WriteFile(file, []byte("whole"), 0o600)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			path, err := i.Make(t.Context(), cache, io.Discard)
			if err == nil {
				_, err = os.Stat(path)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, made.Load())
	left, err := filepath.Glob(filepath.Join(cache, unfinished+"*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestWhoWaitsForAnotherMakerCanBeCalledOff(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	unlock, err := lock(t.Context(), filepath.Join(cache, "fake.lock"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = fake("s").Make(ctx, cache, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, unlock())
}

// A maker that fails, and one that was killed, leave nothing that is taken for an image.
func TestAHalfMadeImageIsNeverFound(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	i := fake("s")
	i.by = func(_ context.Context, _, file string) error {
		return errors.Join(os.WriteFile(file, []byte("half"), 0o600), errors.New("the disk is full"))
	}
	_, err := i.Make(t.Context(), cache, io.Discard)
	require.ErrorContains(t, err, "the disk is full")
	_, err = i.Find(cache)
	require.ErrorIs(t, err, os.ErrNotExist)

	killed := filepath.Join(cache, unfinished+"fake-killed")
	require.NoError(t, os.Mkdir(killed, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(killed, "made.qcow2"), []byte("half"), 0o600))
	i.by = func(_ context.Context, _, file string) error { return os.WriteFile(file, []byte("whole"), 0o600) }
	path, err := i.Make(t.Context(), cache, io.Discard)
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole", string(content))
	require.NoDirExists(t, killed)
}
