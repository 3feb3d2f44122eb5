package page_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/page"
)

// TestHTMXIsTheFileThatWasReleased compares it with the sum that is noted beside it.
func TestHTMXIsTheFileThatWasReleased(t *testing.T) {
	t.Parallel()
	note, err := os.ReadFile("assets/htmx.VERSION")
	require.NoError(t, err)
	require.Contains(t, string(note), "sha256 "+page.Assets()["htmx.min.js"].Sum)
	version := regexp.MustCompile(`htmx ([0-9.]+),`).FindStringSubmatch(string(note))
	require.NotNil(t, version)
	require.Contains(t, string(page.Assets()["htmx.min.js"].Content), `"`+version[1]+`"`)
	licence, err := os.ReadFile("assets/htmx.LICENSE")
	require.NoError(t, err)
	require.Contains(t, string(licence), "Zero-Clause BSD")
}

func TestEveryAssetIsThere(t *testing.T) {
	t.Parallel()
	require.Len(t, page.Assets(), 3)
	for name, asset := range page.Assets() {
		require.NotEmpty(t, asset.Content, name)
		require.NotEmpty(t, asset.Type, name)
		require.Contains(t, page.AssetPath(name), "/assets/"+name+"?v="+asset.Sum[:12])
	}
}

// readable are the pairs of colours that text is written with: what is written, and on what.
var readable = map[string][]string{
	"--text":  {"--bg", "--surface", "--hover"},
	"--muted": {"--bg", "--surface", "--hover"}, "--accent": {"--bg", "--surface", "--hover"},
	"--on-accent": {"--accent"}, "--danger": {"--surface", "--hover"}, "--on-danger": {"--danger"},
	"--good": {"--good-bg"}, "--bad": {"--bad-bg"},
	"--warn": {"--warn-bg"}, "--wait": {"--wait-bg"}, "--off": {"--off-bg"},
}

// seen are what only has to be told apart from what is behind it.
var seen = map[string][]string{"--control": {"--bg", "--surface"}, "--accent": {"--bg", "--surface"}}

func TestEveryTextCanBeReadInLightAndDark(t *testing.T) {
	t.Parallel()
	css := string(page.Assets()["page.css"].Content)
	light, dark, two := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	require.True(t, two)
	dark, _, _ = strings.Cut(dark, "\n}\n")
	for theme, text := range map[string]string{"light": light, "dark": dark} {
		colours := coloursOf(t, text)
		for name := range colours {
			if text := !strings.HasSuffix(name, "-bg") && !strings.HasPrefix(name, "--bar-"); text && !background[name] {
				require.True(t, readable[name] != nil || seen[name] != nil, "nothing is said about %s", name)
			}
		}
		for least, pairs := range map[float64]map[string][]string{4.5: readable, 3: seen} {
			for front, behind := range pairs {
				for _, back := range behind {
					require.GreaterOrEqual(t, contrast(t, colours, front, back), least, "%s: %s on %s", theme, front, back)
				}
			}
		}
	}
}

var background = map[string]bool{"--bg": true, "--surface": true, "--hover": true, "--line": true}

// TestNoColourIsOutsideTheTable keeps a rule from having a colour of its own.
func TestNoColourIsOutsideTheTable(t *testing.T) {
	t.Parallel()
	css := string(page.Assets()["page.css"].Content)
	_, rules, _ := strings.Cut(css, "\n  }\n}\n")
	require.NotEmpty(t, rules)
	require.NotRegexp(t, `#[0-9a-fA-F]{3,8}\b|rgb|hsl`, rules)
	for _, used := range regexp.MustCompile(`[^-]color: ([^;} ]+)`).FindAllStringSubmatch(rules, -1) {
		name := strings.TrimSuffix(strings.TrimPrefix(used[1], "var("), ")")
		require.Contains(t, readable, name, "text has a colour that nobody has computed the contrast of")
	}
}

func coloursOf(t *testing.T, css string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, found := range regexp.MustCompile(`(--[a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
		all[found[1]] = found[2]
	}
	require.Greater(t, len(all), 20)
	return all
}

// contrast is the ratio of WCAG 2, 1 to 21.
func contrast(t *testing.T, colours map[string]string, front, back string) float64 {
	t.Helper()
	a, b := luminance(t, colours[front]), luminance(t, colours[back])
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

func luminance(t *testing.T, colour string) (sum float64) {
	t.Helper()
	require.Len(t, colour, 7, "a colour is not defined")
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		part, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err)
		c := float64(part) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
