package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/output"
)

func TestFindNamesEveryToolWhenOneIsUnknown(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"no name": {}, "an unknown name": {"temporal", "tctl"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := find(names)
			for _, known := range tools() {
				require.ErrorContains(t, err, known.name)
			}
		})
	}
	found, err := find([]string{"workflowcheck", "temporal"})
	require.NoError(t, err)
	require.Equal(t, []string{"workflowcheck", "temporal"}, []string{found[0].name, found[1].name})
}

func TestEveryToolIsPinnedInItsModule(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	require.NoError(t, err)
	for _, known := range tools() {
		mod, err := os.ReadFile(filepath.Join(root, "tools", known.module, "go.mod"))
		require.NoError(t, err)
		require.Contains(t, strings.Fields(string(mod)), known.pkg, "a tool line of tools/%s/go.mod", known.module)
	}
}

func TestTheStampIsThePinnedRelease(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	require.NoError(t, err)
	require.Contains(t, read(t, filepath.Join(root, "tools", "kubernetes", "go.mod")), "k8s.io/kubernetes "+kubernetes+" ")
	const flags = "-X k8s.io/component-base/version."
	require.Equal(t, flags+"gitVersion=v1.36.3 "+flags+"gitMajor=1 "+flags+"gitMinor=36", stampOf("v1.36.3"))
	require.Equal(t, "-ldflags=-s -w", tools()[0].flags()[1])
	for _, known := range tools() {
		require.Equal(t, known.module == "kubernetes", known.stamp != "", known.name)
	}
}

func TestTheKeyChangesWithEveryPart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, parts := range map[string][]string{
		"as it is":           {"go1.26 linux amd64", "pkg", "-trimpath", "module a", "a v1"},
		"another toolchain":  {"go1.27 linux amd64", "pkg", "-trimpath", "module a", "a v1"},
		"another package":    {"go1.26 linux amd64", "pkg2", "-trimpath", "module a", "a v1"},
		"other flags":        {"go1.26 linux amd64", "pkg", "", "module a", "a v1"},
		"another sum":        {"go1.26 linux amd64", "pkg", "-trimpath", "module a", "a v2"},
		"a border elsewhere": {"go1.26 linux amd64", "pkg", "-trimpath", "module aa", " v1"},
	} {
		raw := make([][]byte, len(parts))
		for i, part := range parts {
			raw[i] = []byte(part)
		}
		got := key(raw)
		require.Len(t, got, keyChars)
		require.Equal(t, got, key(raw), "the key is the same every time")
		require.Empty(t, seen[got], "%s and %s have one key", name, seen[got])
		seen[got] = name
	}
}

func TestTheIdentityChangesWithTheModule(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "tools", "temporal")
	require.NoError(t, os.MkdirAll(dir, executable))
	temporal := tools()[0]
	seen := map[string]bool{}
	for _, sum := range []string{"one", "two"} {
		write(t, filepath.Join(dir, "go.mod"), "module example.com/tools\n\ngo 1.26.0\n")
		write(t, filepath.Join(dir, "go.sum"), sum)
		id, err := identity(t.Context(), temporal, root)
		require.NoError(t, err)
		seen[id] = true
	}
	require.Len(t, seen, 2)
	_, err := identity(t.Context(), tools()[1], root)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestInstallReplacesAtomicallyAndOnlyWhatIsOld(t *testing.T) {
	t.Parallel()
	cached, to := filepath.Join(t.TempDir(), "tool-1"), filepath.Join(t.TempDir(), "bin", "tool")
	write(t, cached, "version 1")
	require.NoError(t, install(cached, to))
	require.Equal(t, "version 1", read(t, to))
	info, err := os.Stat(to)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(executable), info.Mode().Perm())

	running, err := os.Open(to) // as a running program holds its file
	require.NoError(t, err)
	defer running.Close()
	require.NoError(t, install(cached, to))
	again, err := os.Stat(to)
	require.NoError(t, err)
	require.True(t, os.SameFile(info, again), "what is current is left alone")

	newer := filepath.Join(t.TempDir(), "tool-2")
	write(t, newer, "version 2")
	require.NoError(t, install(newer, to))
	require.Equal(t, "version 2", read(t, to))
	held, err := running.Stat()
	require.NoError(t, err)
	require.True(t, os.SameFile(info, held), "a running program keeps its file")
	again, err = os.Stat(to)
	require.NoError(t, err)
	require.False(t, os.SameFile(info, again))

	write(t, to, "somebody writes into bin/")
	require.Equal(t, "version 2", read(t, newer), "the cache is not a link to bin/")
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Len(t, left, 1, "no unfinished copy stays")
}

func TestInstallsAtTheSameTimeLeaveAWholeFile(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "tool")
	whole := strings.Repeat("x", 1<<20)
	var all sync.WaitGroup
	for range 8 {
		cached := filepath.Join(t.TempDir(), "tool")
		write(t, cached, whole)
		all.Go(func() {
			if err := install(cached, to); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, read(t, to), len(whole))
}

func TestABuildThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	root, cache := t.TempDir(), t.TempDir()
	broken := tool{name: "broken", module: "broken", pkg: "example.com/tools/broken", takes: "no time"}
	dir := filepath.Join(root, "tools", "broken")
	require.NoError(t, os.MkdirAll(dir, executable))
	write(t, filepath.Join(dir, "go.mod"), "module example.com/tools\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "go.sum"), "")
	err := provide(t.Context(), broken, places{root: root, cache: cache, say: io.Discard})
	require.ErrorContains(t, err, "go build in tools/broken")
	require.ErrorContains(t, err, "example.com/tools/broken", "the compiler's words are shown")
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "broken.lock", left[0].Name(), "nothing but the lock, which nobody holds")
	require.NoFileExists(t, filepath.Join(root, "bin", "broken"))
}

func TestAToolIsBuiltOnce(t *testing.T) {
	t.Parallel()
	root, cache := t.TempDir(), t.TempDir()
	tiny := tool{name: "tiny", module: "tiny", pkg: "example.com/tiny", takes: "a second"}
	dir := filepath.Join(root, "tools", "tiny")
	require.NoError(t, os.MkdirAll(dir, executable))
	write(t, filepath.Join(dir, "go.mod"), "module example.com/tiny\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "go.sum"), "")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	at := places{root: root, cache: cache, say: io.Discard}
	require.NoError(t, provide(t.Context(), tiny, at))
	require.FileExists(t, filepath.Join(root, "bin", "tiny"))

	write(t, filepath.Join(dir, "main.go"), "this does not compile")
	require.NoError(t, os.Remove(filepath.Join(root, "bin", "tiny")))
	require.NoError(t, provide(t.Context(), tiny, at), "the cache has it")
	require.FileExists(t, filepath.Join(root, "bin", "tiny"))
}

// While somebody builds a tool another process waits, and takes what that one has made.
func TestWhoComesWhileAToolIsBuiltTakesIt(t *testing.T) {
	t.Parallel()
	root, cache := t.TempDir(), t.TempDir()
	said := new(output.Log)
	at := places{root: root, cache: cache, say: said}
	tiny := tool{name: "tiny", module: "tiny", pkg: "example.com/tiny", takes: "a second"}
	dir := filepath.Join(root, "tools", "tiny")
	require.NoError(t, os.MkdirAll(dir, executable))
	write(t, filepath.Join(dir, "go.mod"), "module example.com/tiny\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "go.sum"), "")
	write(t, filepath.Join(dir, "main.go"), "this does not compile")
	id, err := identity(t.Context(), tiny, root)
	require.NoError(t, err)
	held := filepath.Join(cache, "tiny.lock")
	unlock, err := lock(t.Context(), held, nil)
	require.NoError(t, err)

	second := make(chan error)
	go func() { second <- provide(t.Context(), tiny, at) }()
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "somebody else is building tiny") },
		time.Minute, time.Millisecond)
	waits := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	third := make(chan error)
	go func() {
		_, err := lock(ctx, held, func() { close(waits) })
		third <- err
	}()
	<-waits
	cancel()
	require.ErrorIs(t, <-third, context.Canceled, "who waits can be stopped")
	write(t, filepath.Join(cache, "tiny-"+id), "made by the first")
	require.NoError(t, unlock())
	require.NoError(t, <-second, "it has compiled nothing")
	require.Equal(t, "made by the first", read(t, filepath.Join(root, "bin", "tiny")))
}

func TestOnlyOldUnfinishedBuildsAreForgotten(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	for name, age := range map[string]time.Duration{
		unfinished + "old": 2 * abandoned, unfinished + "new": time.Minute, "temporal-0": 2 * abandoned,
	} {
		path := filepath.Join(cache, name)
		require.NoError(t, os.Mkdir(path, executable))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, then, then))
	}
	forget(cache)
	require.NoDirExists(t, filepath.Join(cache, unfinished+"old"))
	require.DirExists(t, filepath.Join(cache, unfinished+"new"))
	require.DirExists(t, filepath.Join(cache, "temporal-0"))
}

func TestProgressSaysWhatAndHowLong(t *testing.T) {
	t.Parallel()
	var out output.Log
	done := report(&out, tools()[0], time.Millisecond)
	require.Contains(t, out.String(), "building temporal, as pinned in tools/temporal: about 4 minutes")
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "still building temporal: 0s") },
		time.Minute, time.Millisecond)
	done(nil)
	require.True(t, strings.HasSuffix(out.String(), "built temporal in 0s\n"), out.String())

	var failed output.Log
	report(&failed, tools()[0], time.Hour)(errors.New("no"))
	require.NotContains(t, failed.String(), "built")
}
