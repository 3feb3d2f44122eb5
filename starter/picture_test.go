//go:build tools

package main

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/starter/terminal"
	"github.com/egressfleet/egressfleet/testsuite/browser"
)

// pictures is where they are kept; it is ignored by git. docs/images/cli.png is a copy.
const pictures = "../bin/pictures"

// typed is what the picture of the command line shows.
const typed = `$ starter get -A -o wide
$ starter explain paris-2
$ starter apply -f proxies/ --dry-run
`

// around is the terminal as a page. Its colours are those of the page of the fleet, in the dark.
const around = `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>starter</title><style>
body { margin: 0; background: #11151a; color: #dfe5ec }
pre { margin: 0; padding: 20px 24px; font: 14px/1.45 "DejaVu Sans Mono", monospace; display: inline-block }
.s1 { font-weight: 700 } .s31 { color: #ff8a80 } .s32 { color: #6fd08c } .s33 { color: #f2c14e }
.typed { color: #8ab4f8 }
</style><pre>%s</pre></html>`

var code = regexp.MustCompile("\x1b\\[([0-9]*)m")

// asPage is the output of a terminal as HTML. It knows the codes that package terminal uses.
func asPage(text string) string {
	var all strings.Builder
	for line := range strings.Lines(html.EscapeString(text)) {
		if strings.HasPrefix(line, "$ ") {
			line = `<span class="typed">` + strings.TrimSuffix(line, "\n") + "</span>\n"
		}
		all.WriteString(code.ReplaceAllStringFunc(line, func(escape string) string {
			if number := code.FindStringSubmatch(escape)[1]; number != "0" {
				return `<span class="s` + number + `">`
			}
			return "</span>"
		}))
	}
	return fmt.Sprintf(around, all.String())
}

func TestThePictureOfTheCommandLine(t *testing.T) {
	t.Parallel()
	shown := asPage(playedOn(t, typed, terminal.Screen{Width: 110, Colour: true}))
	require.NotContains(t, shown, "\x1b", "every code is known")
	for _, want := range []string{`<span class="s32">Running`, `<span class="s33">Pending`, `<span class="s31">`} {
		require.Contains(t, shown, want)
	}
	require.Equal(t, strings.Count(shown, "<span"), strings.Count(shown, "</span"))
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, shown)
	}))
	t.Cleanup(page.Close)
	w, closes, err := browser.Open(t.Context(), browser.Options{Width: 990, Height: 300})
	require.NoError(t, err)
	t.Cleanup(closes)
	require.NoError(t, w.Go(page.URL))
	wide, err := browser.Eval[float64](w, "document.documentElement.scrollWidth - innerWidth")
	require.NoError(t, err)
	require.LessOrEqual(t, wide, 0.0, "the terminal is wider than the picture")
	require.NoError(t, w.Picture(pictures, "cli", true))
}
