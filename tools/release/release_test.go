package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module writes a small module that has a worker, whose version the linker stamps.
func module(t *testing.T, folder string) job {
	t.Helper()
	for name, text := range map[string]string{
		"go.mod": "module github.com/egressfleet/egressfleet\n\ngo 1.26.0\n",
		"internal/telemetry/version.go": "package telemetry\n\nvar stamped string\n\n" +
			"func Version() string { return stamped }\n",
		"worker/main.go": "package main\n\nimport (\n\t\"os\"\n\n" +
			"\t\"github.com/egressfleet/egressfleet/internal/telemetry\"\n)\n\n" +
			"func main() { os.Stdout.WriteString(telemetry.Version() + \"\\n\") }\n",
	} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return job{root: folder, version: "v1.2.3"}
}

func TestTwoFoldersMakeTheSameBytes(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	first, second := module(t, filepath.Join(scratch, "a")), module(t, filepath.Join(scratch, "b", "longer"))
	// What this machine is set to does not count, either. That an empty cache does not is
	// for make release-check, which has the minutes.
	second.more = []string{"TZ=Pacific/Auckland", "LANG=C", "USER=somebody"}
	one, err := built(t.Context(), first, "worker")
	require.NoError(t, err)
	two, err := built(t.Context(), second, "worker")
	require.NoError(t, err)
	require.Equal(t, one, two)

	other := first
	other.version = "v1.2.4"
	three, err := built(t.Context(), other, "worker")
	require.NoError(t, err)
	require.NotEqual(t, one, three)
}

func TestABinaryHasNoPathOfThisMachineInIt(t *testing.T) {
	t.Parallel()
	j := module(t, filepath.Join(t.TempDir(), "a-folder-that-is-told-apart"))
	for _, p := range platforms() {
		binary := filepath.Join(j.root, binaryName("worker", p))
		require.NoError(t, compile(t.Context(), j, "worker", p, binary))
		text, err := os.ReadFile(binary)
		require.NoError(t, err)
		require.NotContains(t, string(text), "a-folder-that-is-told-apart")
		info, err := buildinfo.Read(bytes.NewReader(text))
		require.NoError(t, err)
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		require.Equal(t, p.system, settings["GOOS"])
		require.Equal(t, p.processor, settings["GOARCH"])
		require.Equal(t, "0", settings["CGO_ENABLED"])
		require.NotContains(t, settings, "vcs.time")
	}
}

func TestABinaryThatSaysAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	j := module(t, t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(j.root, "internal/telemetry/version.go"),
		[]byte("package telemetry\n\nfunc Version() string { return \"devel\" }\n"), 0o600))
	_, err := built(t.Context(), j, "worker")
	require.ErrorContains(t, err, `worker says version "devel", not "v1.2.3"`)
}

func TestTheStampIsAVariableThatIsThere(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot(t.Context())
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "internal", "telemetry", "version.go"))
	require.NoError(t, err)
	require.Contains(t, string(text), "\nvar "+stamp[strings.LastIndex(stamp, ".")+1:]+" string")
	dockerfile, err := os.ReadFile(filepath.Join(root, "deploy", "image", "Dockerfile"))
	require.NoError(t, err)
	require.Contains(t, string(dockerfile), "-X "+stamp+"=${VERSION}", "the image says its version, too")
}

func TestAVersionIsNothingButAName(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"v1 -X main.a=b", "-v", "v1;ls", "v1/2"} {
		_, err := versionOr(t.Context(), ".", bad)
		require.ErrorContains(t, err, bad)
	}
	got, err := versionOr(t.Context(), ".", "v1.2.3-rc.1+build")
	require.NoError(t, err)
	require.Equal(t, "v1.2.3-rc.1+build", got)
}

func TestPlatformsAreChosenByTheirNames(t *testing.T) {
	t.Parallel()
	got, err := chosen("darwin-arm64,linux-amd64")
	require.NoError(t, err)
	require.Equal(t, []platform{{"darwin", "arm64"}, {"linux", "amd64"}}, got)
	all, err := chosen("")
	require.NoError(t, err)
	require.Equal(t, platforms(), all)
	_, err = chosen("linux-amd64,plan9-386")
	require.ErrorContains(t, err, `platform "plan9-386": there are [linux-amd64 linux-arm64 darwin-arm64]`)
}

func TestAFolderThatHoldsSomethingIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "worker-plan9"), nil, 0o600))
	require.ErrorContains(t, dist(t.Context(), job{}, folder), "is not empty")
}

func TestSumsAreThoseOfTheFilesByName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"b", "a", sumsFile} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("text of "+name), 0o600))
	}
	sums, err := sumsOf(folder)
	require.NoError(t, err)
	require.Equal(t, "5897a7e98cecbe09612c68e7ad1004a7e6013cc406d5c68b2d04f3cf8398a1d4  a\n"+
		"bd5020b214d3e73e5cb05c3d1bde36da57e1ee18313782d4a20064e9c701b177  b\n", sums)
}

func TestBuildsThatDifferAreNamed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, agree(map[string][]string{"worker": {"1", "1"}, "starter": {"2", "2"}}, &out))
	require.Equal(t, "release: binaries=2 builds=2 different=0\n", out.String())
	require.ErrorContains(t, agree(map[string][]string{"worker": {"1", "2"}}, &out),
		"worker: two builds of the same tree differ: 1 and 2")
}

const changelog = `# Changelog

## Unreleased

### Added

- What is not out yet.

## v0.2.0 (2026-11-30)

Two lines
of it.

## v0.1.0

## v0.0.1

- The first.
`

func TestNotesAreThePartOfTheVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"Unreleased": "### Added\n\n- What is not out yet.", "v0.2.0": "Two lines\nof it.", "v0.0.1": "- The first.",
	} {
		got, err := notesOf(changelog, version)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := notesOf(changelog, "v0.2")
	require.EqualError(t, err, `the changelog has no "v0.2"; it has Unreleased, v0.2.0, v0.1.0, v0.0.1`)
	_, err = notesOf(changelog, "v0.1.0")
	require.EqualError(t, err, `the changelog says nothing of "v0.1.0"`)
}

func TestTheChangelogHasNotes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"notes", "Unreleased"}, &out))
	require.Contains(t, out.String(), "### Added")
	require.ErrorContains(t, run(t.Context(), []string{"notes"}, &out), "name a version")
}
