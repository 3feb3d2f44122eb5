package providertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPatternMeansOneTest(t *testing.T) {
	t.Parallel()
	parts := strings.Split(pattern("TestA/a_(b)/Row"), "/")
	require.Len(t, parts, 3, "each level is matched by itself")
	for i, c := range []struct{ yes, no string }{
		{"TestA", "TestAll"}, {"a_(b)", "a_b"}, {"Row", "ARow"},
	} {
		require.Regexp(t, parts[i], c.yes)
		require.NotRegexp(t, parts[i], c.no)
	}
}

func TestOnlyWhatIsBetweenTheMarksIsTheProviders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ printed, want string }{
		"nothing at all":        {"", ""},
		"the test's own":        {"=== RUN\n" + printBegins + printEnds + "PASS\n", ""},
		"a line":                {"=== RUN\n" + printBegins + "creating\n" + printEnds + "PASS\n", "creating\n"},
		"a line without an end": {printBegins + "creating\n", "creating\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, between(c.printed))
		})
	}
}

// A process that dies has no report: that is a failure, too.
func TestAMissingReportFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	read := func() []string {
		return record(t, func(r *recorder) {
			for _, failure := range readReport(r, path, "panic: oh") {
				r.Errorf("%s", failure)
			}
		})
	}
	require.Contains(t, strings.Join(read(), "\n"), "panic: oh", "what it printed is shown")
	require.NoError(t, os.WriteFile(path, []byte(`["a","b"]`), 0o600))
	require.Equal(t, []string{"a", "b"}, read())
	require.NoError(t, os.WriteFile(path, []byte(`[]`), 0o600))
	require.Empty(t, read())
	require.NoError(t, os.WriteFile(path, []byte(`["a"`), 0o600))
	require.NotEmpty(t, read(), "half a report is none")
}

func TestAJobIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		job job
		ok  bool
	}{
		job{"Row", 2, "/tmp/a:b"}.String(): {job{"Row", 2, "/tmp/a:b"}, true},
		"":                                 {job{}, false},
		"Row:x:/tmp/a":                     {job{"Row", 0, "/tmp/a"}, false},
	} {
		got, ok := parseJob(text)
		require.Equal(t, want.ok, ok, text)
		if ok {
			require.Equal(t, want.job, got)
		}
	}
}
