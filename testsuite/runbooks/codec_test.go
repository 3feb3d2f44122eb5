//go:build tools

package runbooks_test

import (
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// proxies are those that are there when the keys of the codec are rotated.
const proxies = 5

var keyName = regexp.MustCompile(`2026-1[0-9]`)

// keysByWorkflow types step 3 of the page.
func (w *world) keysByWorkflow() map[string][]string {
	w.t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(w.codecs("encryption-key-id")) {
		if id, _, is := strings.Cut(line, " "); is && strings.Contains(id, "/") {
			found[id] = keyName.FindAllString(line[len(id):], -1)
		}
	}
	return found
}

// codecs types the block with the words, after what the page has exported before.
func (w *world) codecs(words string) string {
	w.t.Helper()
	return w.shell(w.typed(codecKeys, "CODEC=(") + "\n" + w.typed(codecKeys, words))
}

func (w *world) rotatesTheKeysOfTheCodec() {
	old := w.keysByWorkflow()
	require.Equal(w.t, []string{"2026-11"}, old["proxy/default/pod"])
	w.codecs("> $K/keys/2026-12")
	// "Ten seconds later": once the worker writes with it.
	require.Eventually(w.t, func() bool {
		w.shell("bin/starter hold pod; bin/starter resume pod", keysOf(w.dir))
		return strings.Contains(strings.Join(w.keysByWorkflow()["proxy/default/pod"], " "), "2026-12")
	}, soon, tick, "the new key is taken up")
	w.codecs(`--input '{"renew": true}'`)
	require.Eventually(w.t, func() bool {
		counted := 0
		for id, keys := range w.keysByWorkflow() {
			if strings.HasPrefix(id, "proxy/") && strings.Join(keys, " ") == "2026-12" {
				counted++
			}
		}
		return counted == proxies
	}, soon, tick, "every proxy is written with the new key alone")

	w.codecs("schedule delete")
	w.end()
	w.start()
	status := w.shell("bin/starter gc status", keysOf(w.dir))
	require.Contains(w.t, strings.ToLower(status), "next")

	w.codecs("2026-11.away")
	w.end()
	w.start()
	for _, name := range []string{"google", "google-2", "google-3", "pod", "pod-2"} {
		w.reaches(name, "Running")
	}
	w.shell("bin/starter drain --all --yes", keysOf(w.dir))
	require.Empty(w.t, w.gate.cloud.Instances())
	require.NotContains(w.t, w.log.String(), "which this process does not have")
}
