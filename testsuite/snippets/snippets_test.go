package snippets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

func TestReadKnowsWhichBlocksAreRun(t *testing.T) {
	t.Parallel()
	const text = `# A page

With curl:

<!-- snippet: curl -->
~~~sh
curl -s a

curl -s b
~~~

With Scrapy. Not run by our tests.

<!-- snippet: scrapy, not run -->
~~~python
import scrapy
~~~
`
	got, err := Read(strings.ReplaceAll(text, "~~~", fence))
	require.NoError(t, err)
	require.Equal(t, []Snippet{
		{Name: "curl", Run: true, Text: "curl -s a\n\ncurl -s b\n"},
		{Name: "scrapy", Text: "import scrapy\n"},
	}, got)
}

func TestReadRefusesWhatNobodyWouldRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, says string }{
		"no marker":              {"~~~sh\na\n~~~\n", "line 1: a block without a marker"},
		"a marker farther up":    {"<!-- snippet: a -->\n\n~~~sh\na\n~~~\n", "line 2: the marker \"a\" is not right before"},
		"a marker by itself":     {"<!-- snippet: a -->", "the last block does not end"},
		"a fence that is open":   {"<!-- snippet: a -->\n~~~sh\na\n", "the last block does not end"},
		"a name twice":           {"<!-- snippet: a -->\n~~~\n~~~\n<!-- snippet: a -->\n~~~\n~~~\n", "comes twice"},
		"a slip in the marker":   {"<!-- snippet: a, not-run -->\n~~~\n~~~\n", "is no marker"},
		"not run, in silence":    {"Scrapy.\n\n<!-- snippet: a, not run -->\n~~~\n~~~\n", "disagree"},
		"run, and the page says": {"Curl. Not run by our tests.\n\n<!-- snippet: a -->\n~~~\n~~~\n", "disagree"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(strings.ReplaceAll(c.text, "~~~", fence))
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestEveryBlockOfThePageSaysWhetherItIsRun(t *testing.T) {
	t.Parallel()
	run := 0
	for _, s := range page(t) {
		if s.Run {
			run++
		}
	}
	require.NotZero(t, run)
}

// page is what docs/using-proxies.md tells people to paste.
func page(t *testing.T) []Snippet {
	t.Helper()
	root, err := devserver.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "using-proxies.md"))
	require.NoError(t, err)
	all, err := Read(string(text))
	require.NoError(t, err)
	return all
}
