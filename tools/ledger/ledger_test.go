package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestTheLedgerHolds checks the ledger of this module.
func TestTheLedgerHolds(t *testing.T) {
	t.Parallel()
	summary, err := run(os.DirFS("../.."))
	require.NoError(t, err)
	require.NotContains(t, summary, "ledger: 0 entries")
	t.Log(summary)
}

// aLedger is a module whose ledger has these lines below the head of its table.
func aLedger(lines ...string) fstest.MapFS {
	text := strings.Join(append([]string{"# Ledger", "", header, separator}, lines...), "\n") + "\n"
	return fstest.MapFS{
		ledgerFile: {Data: []byte(text)},
		"here/a_test.go": {Data: []byte(`package here
import "testing"
func TestIsThere(t *testing.T) { t.Run("TestWithin", nil) }
func FuzzIsThere(f *testing.F) {}
func TestMain(m *testing.M) {}
func Testify(t *testing.T) {}
func TestHelper(t *testing.T, x int) {}
func (s suite) TestOfASuite(t *testing.T) {}
`)},
		"here/a.go":               {Data: []byte("package here\nfunc TestInNoTestFile(t *testing.T) {}\n")},
		"here/testdata/b_test.go": {Data: []byte("not Go at all")},
		"tools/other/go.mod":      {Data: []byte("module other\n")},
		"tools/other/c_test.go":   {Data: []byte("package c\nfunc TestElsewhere(t *testing.T) {}\n")},
		"linux/d_linux_test.go":   {Data: []byte("package d\nimport \"testing\"\nfunc TestOnLinux(t *testing.T) {}\n")},
		"tagged/integration_test.go": {
			Data: []byte("//go:build integration\n\npackage e\nimport \"testing\"\nfunc TestReal(t *testing.T) {}\n"),
		},
	}
}

// everyRow cites all rows, so that a table has one fault only.
func everyRow() string {
	return "| C-1.1-01 | MUST | all rows | row: " + strings.Join(rows(), "; row: ") + " |"
}

func TestTheCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, says string }{
		"a test that is gone": {"| K-01 | MUST | x | test: here.TestGone |", "there is no test here.TestGone"},
		"a test of another package": {
			"| K-01 | MUST | x | test: there.TestIsThere |", "there is no test there.TestIsThere",
		},
		"a subtest":                {"| K-01 | MUST | x | test: here.TestWithin |", "there is no test"},
		"the main of the tests":    {"| K-01 | MUST | x | test: here.TestMain |", "there is no test"},
		"a word that begins so":    {"| K-01 | MUST | x | test: here.Testify |", "there is no test"},
		"a helper":                 {"| K-01 | MUST | x | test: here.TestHelper |", "there is no test"},
		"a method":                 {"| K-01 | MUST | x | test: here.TestOfASuite |", "there is no test"},
		"a function of no test":    {"| K-01 | MUST | x | test: here.TestInNoTestFile |", "there is no test"},
		"a test of another module": {"| K-01 | MUST | x | test: tools/other.TestElsewhere |", "there is no test"},
		"one of two is gone": {
			"| K-01 | MUST | x | test: here.TestIsThere; test: here.TestGone |", "there is no test here.TestGone",
		},
		"a row that is gone":         {"| K-01 | MUST | x | row: CreateIsIdempotentNow |", "no row CreateIsIdempotentNow"},
		"an unknown part":            {"| K-01 | MUST | x | part: provider kwm |", `"provider kwm" is no part, want one of `},
		"a waiver without a reason":  {"| K-01 | MUST | x | waiver: |", `the waiver "" gives no reason`},
		"a waiver with a shrug":      {"| K-01 | MUST | x | waiver: n/a |", `the waiver "n/a" gives no reason`},
		"an unknown kind":            {"| K-01 | MUST | x | issue: 12 |", `"issue" is no kind of proof`},
		"no kind":                    {"| K-01 | MUST | x | here.TestIsThere |", "is not a proof such as"},
		"a kind and nothing":         {"| K-01 | MUST | x | test:  |", "is not a proof such as"},
		"no proof":                   {"| K-01 | MUST | x |  |", "is not a line of four cells"},
		"a proof of now and a later": {"| K-01 | MUST | x | test: here.TestIsThere; part: bench |", "make it two"},
		"a proof and a waiver": {
			"| K-01 | MUST | x | test: here.TestIsThere; waiver: it is only half of it |", "make it two",
		},
		"an id twice":        {"| C-1.1-01 | MUST | x | part: bench |", "C-1.1-01: is also the id of line 5"},
		"an id of no form":   {"| K1 | MUST | x | part: bench |", `"K1" is not an id`},
		"an unknown level":   {"| K-01 | COULD | x | part: bench |", `K-01: level "COULD" is none of MUST, SHOULD`},
		"three cells":        {"| K-01 | x | part: bench |", "is not a line of four cells"},
		"five cells":         {"| K-01 | MUST | x | y | part: bench |", "is not a line of four cells"},
		"no bar at the end":  {"| K-01 | MUST | x | part: bench", "is not a line of four cells"},
		"no bar at the head": {"K-01 | MUST | x | part: bench |", "is not a line of four cells"},
		"an indented line":   {" | K-01 | MUST | x | part: bench |", "is not a line of four cells"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(aLedger(everyRow(), c.line))
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, ledgerFile+":6: ", "the error names the line")
		})
	}
}

func TestAGoodLedgerIsSummedUp(t *testing.T) {
	t.Parallel()
	summary, err := run(aLedger(everyRow(),
		"| K-01 | SHOULD | one | test: here.TestIsThere; test: here.FuzzIsThere |",
		"| K-02 | gap | two | test: linux.TestOnLinux; test: tagged.TestReal; row: CreateIsIdempotent |",
		"| K-03 | MAY | three | part: front door; part: operations |",
		"| K-04 | MUST | four | waiver: nobody can see it; nothing depends on it |",
		"| K-05 | feature | five | part: bench |",
		"", "A line of prose.",
	))
	require.NoError(t, err)
	require.Equal(t, "ledger: 6 entries, 3 by tests, 2 by a later part, 1 waived", summary)
}

func TestEveryRowIsInTheLedger(t *testing.T) {
	t.Parallel()
	for _, row := range rows() {
		others := slices.DeleteFunc(rows(), func(name string) bool { return name == row })
		_, err := run(aLedger("| K-01 | MUST | x | row: " + strings.Join(others, "; row: ") + " |"))
		require.ErrorContains(t, err, "no entry names the row "+row+":")
	}
}

func TestEveryProblemIsToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := run(aLedger(everyRow(),
		"| K-01 | MUST | x | part: no |", "| K-01 | MUST |", "| K-01 | MUST | x | part: bench |"))
	for _, want := range []string{":6: K-01: ", ":7: ", ":8: K-01: is also the id of line 6"} {
		require.ErrorContains(t, err, want)
	}
}

func TestTheTestsOfAModuleAreFound(t *testing.T) {
	t.Parallel()
	tests, err := testsOf(aLedger())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"here.TestIsThere", "here.FuzzIsThere", "linux.TestOnLinux", "tagged.TestReal",
	}, slices.Collect(maps.Keys(tests)))

	broken := aLedger()
	broken["here/broken_test.go"] = &fstest.MapFile{Data: []byte("package")}
	_, err = run(broken)
	require.ErrorContains(t, err, "here/broken_test.go")
	_, err = run(fstest.MapFS{})
	require.ErrorContains(t, err, ledgerFile)
}
