//go:build tools && linux

package snippets

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// showing are the blocks that get no page.
var showing = map[string]func(w *world, text string){
	"curl-filter": filtered,
	"follow":      followed,
	"events":      told,
	"prometheus":  scraped,
}

func TestEveryBlockThatIsRunHasATest(t *testing.T) {
	t.Parallel()
	var want []string
	for _, s := range page(t) {
		if s.Run {
			want = append(want, s.Name)
		}
	}
	known := append(slices.Collect(maps.Keys(fetching)), slices.Collect(maps.Keys(showing))...)
	require.ElementsMatch(t, want, known)
}

// One fleet, on the ports that the page names: one block after the other.
func TestThePageIsTrueToTheLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	snippets := page(t)
	for _, s := range snippets {
		if !s.Run {
			t.Logf("%s: not run, as the page says", s.Name)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if show := showing[s.Name]; show != nil {
				show(w.in(t), s.Text)
				return
			}
			fetched(w.in(t), s)
		})
	}
	w.hold("sample-a")
	w.hold("sample-b")
	for _, s := range snippets {
		if _, is := fetching[s.Name]; is {
			t.Run(s.Name+" with no proxy to use", func(t *testing.T) { stayed(w.in(t), s) })
		}
	}
}

// in is the same machine for a subtest.
func (w *world) in(t *testing.T) *world {
	t.Helper()
	inner := *w
	inner.t = t
	return &inner
}

var greeting = regexp.MustCompile(`hello (\S+)`)

// fetched runs a block that gets a page, and looks whom the site has seen.
func fetched(w *world, s Snippet) {
	w.t.Helper()
	way, is := fetching[s.Name]
	require.True(w.t, is, "no test runs the block %q", s.Name)
	w.site.visitors()
	var lines []string
	for range max(way.runs, 1) {
		cmd, out := w.start(s.Text, way.program)
		require.NoError(w.t, cmd.Wait(), out)
		found := greeting.FindAllString(out.String(), -1)
		require.Len(w.t, found, way.lines, out)
		lines = append(lines, found...)
	}
	for _, line := range lines {
		require.Contains(w.t, w.egress, strings.TrimPrefix(line, "hello "))
	}
	visitors := w.site.visitors()
	require.NotEmpty(w.t, visitors)
	require.Subset(w.t, w.egress, visitors, "nothing went past the proxies")
	if way.also != nil {
		way.also(w.t, lines)
	}
}

// stayed runs a block while discovery is empty: the site must not see the client itself.
func stayed(w *world, s Snippet) {
	w.t.Helper()
	way := fetching[s.Name]
	w.site.visitors()
	cmd, out := w.start(s.Text, way.program)
	err := cmd.Wait()
	require.Empty(w.t, w.site.visitors(), "it went without a proxy")
	require.NotRegexp(w.t, greeting, out.String())
	if !way.quiet {
		require.Error(w.t, err, "it says that it has none")
	}
}
