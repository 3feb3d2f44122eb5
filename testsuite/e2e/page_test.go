//go:build tools

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/browser"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// pagePictures is where pictures are kept; it is ignored by git.
func pagePictures(t *testing.T) string {
	root, err := devserver.Root()
	require.NoError(t, err)
	return filepath.Join(root, "bin", "pictures")
}

func openBrowser(t *testing.T, o browser.Options) *browser.Window {
	t.Helper()
	b, closes, err := browser.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(closes)
	return b
}

// TestThePageOfARealFleet looks at real proxies, holds one and lets it go on, by the
// keyboard alone, and reads the same without scripts.
func TestThePageOfARealFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("worker.yaml", w.read("worker.yaml")+"temporal: {ui: \"http://127.0.0.1:8233\"}\n"+
		"gc: {interval: 1s}\ncheck: {interval: 1s}\n")
	w.start()
	for name, port := range map[string]int{"alpha": freePort(t), "beta": freePort(t)} {
		status, body := w.put(name, v1.ProxySpec{Provider: "local", Port: port})
		require.Equal(t, http.StatusCreated, status, "%s", body)
		w.running(name)
	}
	require.Eventually(t, func() bool { return len(w.endpoints()) == 2 }, soon, tick)
	address := fmt.Sprintf("http://127.0.0.1:%d", w.api)

	b := openBrowser(t, browser.Options{})
	require.NoError(t, b.Go(address+"/"))
	require.NoError(t, b.Until("document.querySelector('#count').innerText === '2 proxies'"))
	for _, title := range []string{"checks-title", "gc-title"} { // the page goes on by itself
		require.NoError(t, b.Until(fmt.Sprintf("document.querySelector('section[aria-labelledby=%s] tbody')?.innerText"+
			".includes('local')", title)), "%s\n%s", title, w.log)
	}
	require.NoError(t, b.TabTo("#q"))
	require.NoError(t, b.Until("getComputedStyle(document.activeElement).outlineStyle === 'solid'"), "the focus is seen")
	require.NoError(t, b.Press("alp"))
	require.NoError(t, b.Until("document.querySelector('#count').innerText === '1 of 2 proxies'"))
	require.NoError(t, b.TabTo("a[href='/proxies/default/alpha']"))
	require.NoError(t, b.Press(kb.Enter))
	require.NoError(t, b.Until("document.querySelector('#timeline')?.innerText.includes('Created')"))
	const workflow = "http://127.0.0.1:8233/namespaces/default/workflows/proxy%2Fdefault%2Falpha"
	require.NoError(t, b.Until(fmt.Sprintf("document.querySelector(\"a[href='%s']\") !== null", workflow)))
	require.NoError(t, b.Picture(pagePictures(t), "real-proxy", true))

	require.NoError(t, b.TabTo("#hold-reason"))
	require.NoError(t, b.Press("billing"))
	require.NoError(t, b.TabTo("form[action$='/hold'] button"))
	require.NoError(t, b.Press(kb.Enter))
	require.NoError(t, b.Until("document.querySelector('.notice[role=status]')?.innerText.startsWith('Held')"))
	require.NoError(t, b.Until("document.activeElement.matches('.notice')"), "who cannot see it is told")
	require.True(t, w.get("alpha").Status.Held)
	require.Eventually(t, func() bool { return len(w.endpoints()) == 1 }, soon, tick)
	require.NoError(t, b.TabTo("form[action$='/resume'] button"))
	require.NoError(t, b.Press(kb.Enter))
	require.NoError(t, b.Until("document.querySelector('.notice[role=status]')?.innerText.startsWith('Resumed')"))
	require.False(t, w.get("alpha").Status.Held)
	require.NoError(t, b.Until("document.querySelector('#timeline')?.innerText.includes('billing')"))
	require.Empty(t, b.Complaints())

	plain := openBrowser(t, browser.Options{NoScripts: true})
	require.NoError(t, plain.Go(address+"/?q=beta&phase="))
	require.NoError(t, plain.Until("location.search === '?q=beta'"))
	require.NoError(t, plain.Until("document.querySelector('#count').innerText === '1 of 2 proxies'"))
	require.NoError(t, plain.Until("document.querySelector('noscript').innerText.includes('reload it')"))
	require.NoError(t, plain.TabTo("a[href='/proxies/default/beta']"))
	require.NoError(t, plain.Press(kb.Enter))
	require.NoError(t, plain.Until("document.querySelector('#timeline')?.innerText.includes('Created')"))
	require.NoError(t, plain.TabTo("form[action$='/hold'] button"))
	require.NoError(t, plain.Press(kb.Enter))
	require.NoError(t, plain.Until("document.querySelector('.notice[role=status]')?.innerText.startsWith('Held')"))
	require.NoError(t, plain.Picture(pagePictures(t), "without-scripts", true))
}
