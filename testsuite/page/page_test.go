//go:build tools

package page

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/browser"
)

// pictures is where they are kept; it is ignored by git.
const pictures = "../../bin/pictures"

const soon, look = 30 * time.Second, 20 * time.Millisecond

// serve is the page of a told fleet, and its address.
func serve(t *testing.T, f *told, keys server.Keys) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := server.New(f, server.Options{
		Keys:        keys,
		WorkflowURL: func(namespace, name string) string { return "http://127.0.0.1:8233/" + namespace + "/" + name },
		Providers: func() (v1.ProviderList, bool) {
			return v1.ProviderList{
				Configuration: v1.ProviderConfiguration{State: v1.ConfigurationLoaded},
				Items: []v1.Provider{
					{Name: "gcp-eu", Type: "gcp"}, {Name: "kvm-rack1", Type: "kvm"}, {Name: "pods", Type: "kubernetes"},
				},
			}, true
		},
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	address := "http://" + listener.Addr().String()
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/readyz", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	}, soon, look)
	return address
}

func open(t *testing.T, o browser.Options) *browser.Window {
	t.Helper()
	w, closes, err := browser.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(closes)
	return w
}

// visit opens a page that has its list.
func visit(t *testing.T, w *browser.Window, address string) {
	t.Helper()
	require.NoError(t, w.Go(address))
	require.NoError(t, w.Until("document.querySelector('main') !== null"))
}

func eval[T any](t *testing.T, w *browser.Window, expression string) T {
	t.Helper()
	got, err := browser.Eval[T](w, expression)
	require.NoError(t, err, expression)
	return got
}

//go:embed testdata/faint.js
var tooFaint string

func TestThePageInLightAndDark(t *testing.T) {
	address := serve(t, newTold(time.Now(), 47), nil)
	grounds := map[bool]string{false: "rgb(246, 247, 249)", true: "rgb(17, 21, 26)"}
	for name, o := range map[string]browser.Options{
		"light": {}, "dark": {Dark: true}, "narrow": {Width: 420, Height: 900},
	} {
		w := open(t, o)
		for page, path := range map[string]string{
			"fleet": "/", "proxy": "/proxies/crawl/exit-001", "trouble": "/proxies/crawl/exit-006",
			"delete": "/proxies/crawl/exit-001/delete", "nobody": "/proxies/crawl/nobody", "filtered": "/?phase=Blocked",
		} {
			visit(t, w, address+path)
			require.Equal(t, grounds[o.Dark], eval[string](t, w, "getComputedStyle(document.documentElement).backgroundColor"))
			require.Empty(t, eval[[]string](t, w, tooFaint), "%s %s", name, page)
			require.LessOrEqual(t, eval[float64](t, w, "document.documentElement.scrollWidth - innerWidth"), 0.0,
				"%s %s is wider than its window", name, page)
			require.NoError(t, w.Picture(pictures, page+"-"+name, true))
		}
		var serious []string
		for _, complaint := range w.Complaints() {
			if !isMissing(complaint) {
				serious = append(serious, complaint)
			}
		}
		require.Empty(t, serious, name)
	}
}

// TestThePicturesOfTheDocumentation takes what docs/images has: copy them when the page changes.
func TestThePicturesOfTheDocumentation(t *testing.T) {
	address := serve(t, newTold(time.Now(), 15), nil)
	w := open(t, browser.Options{})
	visit(t, w, address+"/")
	require.NoError(t, w.Picture(pictures, "page", true))
	visit(t, w, address+"/docs")
	require.NoError(t, w.Picture(pictures, "openapi", false))
}

// isMissing is what a browser says of the page that says 404.
func isMissing(complaint string) bool {
	return filepath.Base(complaint) == "nobody)"
}

func TestTheTableIsFilteredWhileOneTypes(t *testing.T) {
	w := open(t, browser.Options{})
	visit(t, w, serve(t, newTold(time.Now(), 47), nil)+"/")
	require.Equal(t, "47 proxies", eval[string](t, w, "document.querySelector('#count').innerText"))
	require.NoError(t, w.TabTo("#q"))
	require.NoError(t, w.Press("exit-00"))
	require.NoError(t, w.Until("document.querySelector('#count').innerText === '9 of 47 proxies'"))
	require.NoError(t, w.Until("location.search === '?q=exit-00'"), "the address can be passed on")
	require.True(t, eval[bool](t, w, "document.activeElement.id === 'q' && document.activeElement.value === 'exit-00'"))
	require.Equal(t, "polite", eval[string](t, w, "document.querySelector('#count').getAttribute('aria-live')"))
	require.NoError(t, w.TabTo("#phase"))
	require.NoError(t, w.Press("Bl")) // as one chooses in a list
	require.NoError(t, w.Until("document.querySelector('#count').innerText === '0 of 47 proxies'"))
	require.Empty(t, w.Complaints())
}

func TestATableThatGoesOnByItselfKeepsTheFocus(t *testing.T) {
	f := newTold(time.Now(), 20)
	w := open(t, browser.Options{})
	visit(t, w, serve(t, f, nil)+"/")
	require.NoError(t, w.TabTo("a[href='/proxies/crawl/exit-002']"))
	_, err := f.Hold(t.Context(), "crawl", "exit-001", v1.Hold{}, fleet.Request{})
	require.NoError(t, err)
	require.NoError(t, w.Until(`document.querySelector("[id='p-crawl.exit-001']").innerText.includes('held')`))
	require.True(t, eval[bool](t, w, "document.activeElement.matches(\"a[href='/proxies/crawl/exit-002']\")"))
	require.Empty(t, w.Complaints())
}

func TestTwoThousandProxiesAreShown(t *testing.T) {
	w := open(t, browser.Options{})
	visit(t, w, serve(t, newTold(time.Now(), 2000), nil)+"/")
	require.Equal(t, 100, eval[int](t, w, "document.querySelectorAll('tbody tr[id]').length"))
	took := eval[float64](t, w, "performance.getEntriesByType('navigation')[0].loadEventEnd")
	t.Logf("2000 proxies: loaded after %.0f ms", took)
	require.NoError(t, w.TabTo("a[rel=next]"))
	require.NoError(t, w.Press(kb.Enter))
	require.NoError(t, w.Until("location.search.startsWith('?continue=')"))
	require.NoError(t, w.Until("document.querySelectorAll('tbody tr[id]').length === 100"))
	require.NoError(t, w.Picture(pictures, "large", false))
}

func TestABrowserLogsInAndMayWhatItsTokenMay(t *testing.T) {
	keys := tokens(t, map[string]string{"viewer": "read", "editor": "write"})
	address := serve(t, newTold(time.Now(), 12), keys)
	w := open(t, browser.Options{})
	login := func(name string) {
		visit(t, w, address+"/")
		require.NoError(t, w.TabTo("#token"))
		require.NoError(t, w.Press("secret-of-"+name+kb.Enter))
		require.NoError(t, w.Until("document.querySelector('#count') !== null"))
	}
	login("viewer")
	visit(t, w, address+"/proxies/crawl/exit-001")
	require.Contains(t, eval[string](t, w, "document.querySelector('.actions').innerText"), "Your token may look")
	visit(t, w, address+"/proxies/crawl/exit-001/delete")
	require.Contains(t, eval[string](t, w, "document.querySelector('main').innerText"), "has not the scope write")
	require.NoError(t, w.Picture(pictures, "forbidden", false))
	require.NoError(t, w.TabTo("form[action='/logout'] button"))
	require.NoError(t, w.Press(kb.Enter))
	require.NoError(t, w.Until("document.querySelector('#token') !== null"))
	login("editor")
	visit(t, w, address+"/proxies/crawl/exit-001")
	require.NoError(t, w.TabTo("a[href$='/delete']"))
	require.NoError(t, w.Press(kb.Enter))
	require.NoError(t, w.Until("document.querySelector('h1').innerText === 'Delete exit-001?'"))
	require.NoError(t, w.TabTo("button.danger"))
	require.NoError(t, w.Press(kb.Enter))
	require.NoError(t, w.Until("document.querySelector('.notice')?.innerText.startsWith('Deleting')"))
}

// TestALinkOfAnotherSiteFindsTheSession follows a link from a page of another site, with
// which a browser does not send the session.
func TestALinkOfAnotherSiteFindsTheSession(t *testing.T) {
	address := serve(t, newTold(time.Now(), 12), tokens(t, map[string]string{"viewer": "read"}))
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "<title>other</title><a id=link href='%s/?q=exit-001'>look</a>", address)
	}))
	t.Cleanup(other.Close)
	w := open(t, browser.Options{})
	require.NoError(t, w.Go(address+"/?phase=Running"))
	require.NoError(t, w.TabTo("#token"))
	require.NoError(t, w.Press("secret-of-viewer"+kb.Enter))
	require.NoError(t, w.Until("location.search === '?phase=Running' && document.querySelector('#count') !== null"))
	require.NoError(t, w.Go(strings.Replace(other.URL, "127.0.0.1", "localhost", 1)))
	require.NoError(t, w.TabTo("#link"))
	require.NoError(t, w.Press(kb.Enter))
	require.NoError(t, w.Until("document.querySelector('#count')?.innerText === '1 of 12 proxies'"))
}

func tokens(t *testing.T, scopes map[string]string) server.Keys {
	t.Helper()
	text := "tokens:\n"
	for name, scope := range scopes {
		sum := sha256.Sum256([]byte("secret-of-" + name))
		text += fmt.Sprintf("- {name: %s, sha256: %s, scopes: [%s]}\n", name, hex.EncodeToString(sum[:]), scope)
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	keys, err := access.Open(path, nil, nil)
	require.NoError(t, err)
	return keys
}
