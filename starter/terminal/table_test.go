package terminal_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/starter/terminal"
)

func proxies() [][]string {
	return [][]string{
		{"NAME", "PROVIDER", "PHASE", "ADDRESS", "REASON", "AGE", "MESSAGE"},
		{"one-of-a-long-name", "gcp", "Running", "10.1.2.3:3128", "", "1h", ""},
		{"two", "gcp", "Blocked", "", "PermanentError", "2d", "the project 計算機 has no billing account"},
	}
}

func TestATableFitsItsScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width int
		want  string
	}{
		"whole": {0, `
NAME                PROVIDER  PHASE    ADDRESS        REASON          AGE  MESSAGE
one-of-a-long-name  gcp       Running  10.1.2.3:3128  -               1h   -
two                 gcp       Blocked  -              PermanentError  2d   the project 計算機 has no billing account
`},
		"a sentence is cut": {100, `
NAME                PROVIDER  PHASE    ADDRESS        REASON          AGE  MESSAGE
one-of-a-long-name  gcp       Running  10.1.2.3:3128  -               1h   -
two                 gcp       Blocked  -              PermanentError  2d   the project 計算機 has n…
`},
		"columns are left out": {90, `
NAME                PHASE    ADDRESS        REASON          MESSAGE
one-of-a-long-name  Running  10.1.2.3:3128  -               -
two                 Blocked  -              PermanentError  the project 計算機 has no bil…
`},
		"all is cut": {40, `
NAME       PHASE    REASON     MESSAGE
one-of-a…  Running  -          -
two        Blocked  Permanen…  the proj…
`},
		"a sliver": {9, `
NAME
one-of-a…
two
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := terminal.Screen{Width: c.width}.Table("", proxies())
			require.Equal(t, strings.TrimPrefix(c.want, "\n"), got)
		})
	}
}

func TestNoWidthWraps(t *testing.T) {
	t.Parallel()
	for width := 1; width < 200; width++ {
		for _, indent := range []string{"", "  "} {
			for line := range strings.Lines(terminal.Screen{Width: width}.Table(indent, proxies())) {
				require.LessOrEqual(t, runewidth.StringWidth(strings.TrimSuffix(line, "\n")), width, "%q", line)
			}
		}
	}
}

func TestColoursAreAroundWordsOnly(t *testing.T) {
	t.Parallel()
	rows := proxies()
	painted := terminal.Screen{Colour: true}.Table("", rows)
	require.Contains(t, painted, "  \x1b[32mRunning\x1b[0m  10.1.2.3:3128")
	require.Contains(t, painted, "  \x1b[31mBlocked\x1b[0m  -")
	for _, code := range []string{"\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		painted = strings.ReplaceAll(painted, code, "")
	}
	require.Equal(t, terminal.Screen{}.Table("", rows), painted, "the same, without its colours")
}

func TestATerminalObeysNoMessage(t *testing.T) {
	t.Parallel()
	got := terminal.Screen{}.Table("", [][]string{{"MESSAGE"}, {"a\x1b]0;owned\x07\nb\u202e"}})
	require.Equal(t, "MESSAGE\na\ufffd]0;owned\ufffd b\ufffd\n", got)
}

func TestAFileIsNoTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.Equal(t, terminal.Screen{}, terminal.Of(f, func(string) string { return "" }))
}

func TestADifferenceIsPaintedByLine(t *testing.T) {
	t.Parallel()
	const text = "@@ -1 +1 @@\n same\n-old\n+new\n"
	require.Equal(t, text, terminal.Screen{Width: 80}.Diff(text))
	require.Equal(t, "\x1b[33m@@ -1 +1 @@\x1b[0m\n same\n\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\n",
		terminal.Screen{Colour: true}.Diff(text))
}

func TestAParagraphIsBrokenBetweenWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Why: one two\n     three 計\n     http://a.long.one\n     four\n",
		terminal.Screen{}.Paragraph("Why: ", "one two three 計 http://a.long.one four", 13))
	require.Equal(t, "Why: one two\n", terminal.Screen{}.Paragraph("Why: ", "one  two", 12))
}
