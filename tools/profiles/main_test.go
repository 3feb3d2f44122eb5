package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/guides"
)

func TestTheTableHasARowForEachAxisAndAColumnForEachType(t *testing.T) {
	t.Parallel()
	got := table([]guides.Typed{
		{Type: "a", Profile: providers.Profile{Readiness: providers.ReadinessImmediate, BackendTest: providers.TestUnit}},
		{Type: "b", Profile: providers.Profile{Readiness: providers.ReadinessProvisioningWindow}},
	})
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	require.Len(t, lines, 2+19)
	require.Equal(t, "| § | axis | [a](a.md) | [b](b.md) |", lines[0])
	require.Equal(t, "|---|---|---|---|", lines[1])
	require.Equal(t, "| 4.1 | readiness | immediate | provisioning-window |", lines[2])
	require.Equal(t, "| 4.19 | backend-test | unit-tests |  |", lines[20])
	require.Empty(t, table(nil))
}

func TestSpliceReplacesTheTableAndNothingElse(t *testing.T) {
	t.Parallel()
	page := "before\n" + begin + "old\n" + end + "after\n"
	for range 2 {
		var err error
		page, err = splice(page, "new\n")
		require.NoError(t, err)
		require.Equal(t, "before\n"+begin+"\nnew\n\n"+end+"after\n", page)
	}
	for _, page := range []string{"", begin, end, end + begin} {
		_, err := splice(page, "new\n")
		require.ErrorContains(t, err, "the lines around the table are missing")
	}
}

func TestThePageIsWrittenAnew(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), nil), "usage")
	root := t.TempDir()
	require.Error(t, run(t.Context(), []string{root}), "there are no samples")
	require.NoError(t, os.CopyFS(filepath.Join(root, "docs", "samples"), os.DirFS("../../docs/samples")))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs", "providers"), 0o700))
	path := filepath.Join(root, "docs", "providers", "README.md")
	require.NoError(t, os.WriteFile(path, []byte(begin+end), 0o600))
	require.NoError(t, run(t.Context(), []string{root}))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "| 4.9 | not-found | error-code |")
}

func TestThePageIsCurrent(t *testing.T) {
	t.Parallel()
	types, err := guides.Profiles(t.Context(), "../..")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/providers/README.md")
	require.NoError(t, err)
	current, err := splice(string(page), table(types))
	require.NoError(t, err)
	require.Equal(t, current, string(page), "make generate writes it")
}
