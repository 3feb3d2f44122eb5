package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// The tokens of a guarded stage, by the name of their grant.
const guards = `
tokens:
- {name: crawler, sha256: SUM-crawler, scopes: [discovery]}
- {name: viewer, sha256: SUM-viewer, scopes: [read]}
- {name: editor, sha256: SUM-editor, scopes: [write]}
- {name: boss, sha256: SUM-boss, scopes: [admin]}
- {name: crawl-only, sha256: SUM-crawl-only, scopes: [admin], namespaces: [crawl]}
- {name: gold-only, sha256: SUM-gold-only, scopes: [admin], labels: tier=gold}
- {name: hasty, sha256: SUM-hasty, scopes: [read], requestsPerSecond: 0.5}
`

const unchanged = `{"spec": {"provider": "gcp", "port": 3128}}`

func secretOf(name string) string { return "s3cret-of-" + name }

// guardsFile writes them as they are in a file.
func guardsFile(dir string) (path string, err error) {
	text := guards
	for _, name := range []string{"crawler", "viewer", "editor", "boss", "crawl-only", "gold-only", "hasty"} {
		sum := sha256.Sum256([]byte(secretOf(name)))
		text = strings.Replace(text, "SUM-"+name+",", hex.EncodeToString(sum[:])+",", 1)
	}
	path = filepath.Join(dir, "tokens.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// guarded is a stage that requires tokens.
func guarded(t *testing.T, proxies ...v1.Proxy) *stage {
	t.Helper()
	path, err := guardsFile(t.TempDir())
	require.NoError(t, err)
	keys, err := access.Open(path, nil, nil)
	require.NoError(t, err)
	s := newStageWith(keys, proxies...)
	s.server.Refresh(t.Context())
	return s
}

// otherProcess is one more API with a file of the same tokens.
var otherProcess = sync.OnceValue(func() *access.File {
	dir, err := os.MkdirTemp("", "tokens-*")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := guardsFile(dir)
	if err != nil {
		panic(err)
	}
	file, err := access.Open(path, nil, func() time.Time { return birth }) // and never looks again
	if err != nil {
		panic(err)
	}
	return file
})

// sessionOf is what a browser has that has logged in at another process of the same API.
func sessionOf(name string) string {
	return otherProcess().Session(secretOf(name), birth.Add(time.Hour))
}

// as is the header of a token.
func as(name string) []string { return []string{"Authorization", "Bearer " + secretOf(name)} }

func TestNothingButHealthAnswersWithoutAToken(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	for path, item := range loadContract(t).Paths.Map() {
		for method := range item.Operations() {
			target := strings.NewReplacer("{namespace}", "default", "{name}", "a").Replace(path)
			want := http.StatusUnauthorized
			if path == "/healthz" || path == "/readyz" {
				want = http.StatusOK
			}
			answer := s.ask(t, method, target, "")
			require.Equal(t, want, answer.Code, "%s %s", method, target)
			if want == http.StatusUnauthorized {
				require.Equal(t, `Bearer realm="egressfleet"`, answer.Header().Get("WWW-Authenticate"))
			}
		}
	}
	for _, target := range []string{"/", "/nowhere", "/v1", "/metrics", "/healthz/"} {
		require.Equal(t, http.StatusUnauthorized, s.ask(t, "GET", target, "").Code, target)
	}
}

func TestWhatIsNotATokenIsRefused(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	for name, headers := range map[string][]string{
		"an empty one":   {"Authorization", "Bearer "},
		"an unknown one": {"Authorization", "Bearer nonsense"},
		"another scheme": {"Authorization", "Basic " + secretOf("boss")},
		"no scheme":      {"Authorization", secretOf("boss")},
		"two headers":    {"Authorization", "Bearer " + secretOf("boss"), "Authorization", "Bearer " + secretOf("viewer")},
		"a bad one, and a good session": {
			"Authorization", "Bearer nonsense", "Cookie", "egressfleet_session=" + sessionOf("boss"),
		},
		"a token as a session": {"Cookie", "egressfleet_session=" + secretOf("boss")},
		"a bad session":        {"Cookie", "egressfleet_session=nonsense"},
		"another cookie":       {"Cookie", "session=" + sessionOf("boss")},
	} {
		answer := s.ask(t, "GET", "/v1/providers", "", headers...)
		require.Equal(t, http.StatusUnauthorized, answer.Code, name)
		require.Equal(t, "unauthenticated", kindOf(t, answer.Body.Bytes()), name)
		require.NotContains(t, answer.Body.String(), "s3cret", name)
	}
	require.NotContains(t, s.log.String(), "s3cret")
}

func TestATokenMayWhatItsScopeSays(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]map[string]int{
		"GET /v1/discovery":                               {"crawler": 200, "viewer": 200, "boss": 200},
		"GET /v1/providers":                               {"crawler": 403, "viewer": 200},
		"GET " + proxyA:                                   {"crawler": 403, "viewer": 200, "editor": 200},
		"GET " + proxyA + "/timeline":                     {"crawler": 403, "viewer": 200},
		"GET /v1/namespaces/default/proxies":              {"crawler": 403, "viewer": 200},
		"PUT " + proxyA:                                   {"crawler": 403, "viewer": 403, "editor": 200},
		"POST " + proxyA + "/hold":                        {"crawler": 403, "viewer": 403, "editor": 200},
		"DELETE " + proxyA:                                {"crawler": 403, "viewer": 403, "editor": 202},
		"DELETE " + proxyA + "?skipCleanup=true&reason=x": {"editor": 403, "boss": 202},
	} {
		for name, status := range want {
			method, path, _ := strings.Cut(target, " ")
			body := ""
			if method == "PUT" {
				body = unchanged
			}
			s := guarded(t, pool()...)
			answer := s.ask(t, method, path, body, as(name)...)
			require.Equal(t, status, answer.Code, "%s as %s: %s", target, name, answer.Body)
			if status == http.StatusForbidden {
				require.Equal(t, "forbidden", kindOf(t, answer.Body.Bytes()))
				require.Contains(t, answer.Body.String(), name, "it says which token is not enough")
				require.Empty(t, s.fleet.told, "and nothing was asked")
			}
		}
	}
}

func TestATokenOfANamespaceIsRefusedElsewhere(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	require.Equal(t, http.StatusOK, s.ask(t, "GET", "/v1/namespaces/crawl/proxies/v6", "", as("crawl-only")...).Code)
	for _, target := range []string{proxyA, "/v1/namespaces/default/proxies", proxyA + "/timeline"} {
		answer := s.ask(t, "GET", target, "", as("crawl-only")...)
		require.Equal(t, http.StatusForbidden, answer.Code, target)
		require.Contains(t, answer.Body.String(), `"field":"metadata.namespace","value":"default"`)
	}
	var list v1.Discovery
	require.NoError(t, json.Unmarshal(s.ask(t, "GET", "/v1/discovery", "", as("crawl-only")...).Body.Bytes(), &list))
	require.Len(t, list.Proxies, 1)
	require.Equal(t, "v6", list.Proxies[0].Name)
	require.Equal(t, "http://[2001:db8::7]:3128\n",
		s.ask(t, "GET", "/v1/discovery?format=txt", "", as("crawl-only")...).Body.String())
}

func TestAProxyThatATokenIsNotForIsNotThere(t *testing.T) {
	t.Parallel()
	gold := running("default", "gold", "203.0.113.20")
	gold.Metadata.Labels = map[string]string{"tier": "gold"}
	s := guarded(t, append(pool(), gold)...)
	token := as("gold-only")
	require.Equal(t, http.StatusOK, s.ask(t, "GET", "/v1/namespaces/default/proxies/gold", "", token...).Code)
	for _, call := range []string{
		"GET " + proxyA, "GET " + proxyA + "/timeline", "DELETE " + proxyA, "POST " + proxyA + "/hold",
		"POST " + proxyA + "/replace", "POST " + proxyA + "/retry", "POST " + proxyA + "/resume",
	} {
		method, target, _ := strings.Cut(call, " ")
		require.Equal(t, http.StatusNotFound, s.ask(t, method, target, "", token...).Code, call)
	}
	require.Empty(t, s.fleet.told)
	var list struct{ Items []v1.Proxy }
	require.NoError(t, json.Unmarshal(
		s.ask(t, "GET", "/v1/namespaces/default/proxies", "", token...).Body.Bytes(), &list))
	require.Len(t, list.Items, 1)
	require.Equal(t, "gold", list.Items[0].Metadata.Name)

	labelled := `{"metadata": {"labels": {"tier": "gold"}}, "spec": {"provider": "local", "port": 3128}}`
	require.Equal(t, http.StatusForbidden, s.ask(t, "PUT", proxyA, labelled, token...).Code, "it is another's")
	fresh := "/v1/namespaces/default/proxies/new"
	answer := s.ask(t, "PUT", fresh, minimal, token...)
	require.Equal(t, http.StatusForbidden, answer.Code)
	require.Contains(t, answer.Body.String(), `"field":"metadata.labels","value":"tier=gold"`)
	require.Equal(t, http.StatusCreated, s.ask(t, "PUT", fresh, labelled, token...).Code)
	require.Equal(t, http.StatusOK, s.ask(t, "PUT", fresh, labelled, token...).Code)
}

func TestATokenInTheQueryIsForDiscoveryAlone(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	ask := func(target, name string) int { return s.ask(t, "GET", target+"token="+secretOf(name), "").Code }
	require.Equal(t, http.StatusOK, ask("/v1/discovery?", "crawler"))
	require.Equal(t, http.StatusOK, ask("/v1/discovery?format=txt&", "crawler"))
	require.Equal(t, http.StatusForbidden, ask("/v1/discovery?", "viewer"), "one that may more is in no address")
	require.Equal(t, http.StatusUnauthorized, ask("/v1/discovery?", "nobody"))
	require.Equal(t, http.StatusUnauthorized, ask("/v1/providers?", "crawler"), "elsewhere it is none")
	require.NotContains(t, s.log.String(), "s3cret")
}

func TestATokenThatAsksTooOftenIsToldWhenToComeBack(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	require.Equal(t, http.StatusOK, s.ask(t, "GET", "/v1/providers", "", as("hasty")...).Code)
	answer := s.ask(t, "GET", "/v1/providers", "", as("hasty")...)
	require.Equal(t, http.StatusTooManyRequests, answer.Code)
	require.Equal(t, "too-many-requests", kindOf(t, answer.Body.Bytes()))
	require.Equal(t, "2", answer.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, s.ask(t, "GET", "/v1/providers", "", as("viewer")...).Code, "others are not held up")
}

func TestThePageOfAnotherSiteCannotUseASession(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	session := []string{"Cookie", "egressfleet_session=" + sessionOf("editor")}
	hold := func(headers ...string) int {
		return s.ask(t, "POST", proxyA+"/hold", "", append(session, headers...)...).Code
	}
	require.Equal(t, http.StatusOK, hold("Sec-Fetch-Site", "same-origin"))
	require.Equal(t, http.StatusForbidden, hold("Sec-Fetch-Site", "cross-site"))
	require.Equal(t, http.StatusForbidden, hold("Origin", "https://evil.example"))
	require.Equal(t, http.StatusOK, s.ask(t, "POST", proxyA+"/hold", "",
		append(as("editor"), "Sec-Fetch-Site", "cross-site")...).Code, "a token in a header is no browser's own doing")
}

func TestABrowserTradesATokenForASession(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	const form = "application/x-www-form-urlencoded"
	enter := func(token string, headers ...string) *httptest.ResponseRecorder {
		return s.ask(t, "POST", "/login", "token="+token, append([]string{"Content-Type", form}, headers...)...)
	}
	shown := s.ask(t, "GET", "/login", "")
	require.Equal(t, http.StatusUnauthorized, shown.Code)
	require.Contains(t, shown.Body.String(), `<input id="token" type="password"`)
	require.Contains(t, shown.Header().Get("Content-Security-Policy"), "default-src 'none'")

	entered := enter(secretOf("viewer"))
	require.Equal(t, http.StatusSeeOther, entered.Code)
	cookie := entered.Result().Cookies()[0]
	require.True(t, cookie.HttpOnly && cookie.Secure && cookie.SameSite == http.SameSiteStrictMode)
	require.NotContains(t, cookie.Value, secretOf("viewer"))
	require.Equal(t, 12*60*60, cookie.MaxAge)
	open := func() int { return s.ask(t, "GET", proxyA, "", "Cookie", cookie.Name+"="+cookie.Value).Code }
	require.Equal(t, http.StatusOK, open())
	require.Equal(t, http.StatusUnauthorized, s.ask(t, "GET", proxyA, "", "Authorization", "Bearer "+cookie.Value).Code,
		"a session is no token")

	for _, refused := range []*httptest.ResponseRecorder{
		enter("nonsense"), enter(""), enter(secretOf("viewer"), "Sec-Fetch-Site", "cross-site"),
		enter(strings.Repeat("x", 5000)),
	} {
		require.Empty(t, refused.Result().Cookies())
		require.GreaterOrEqual(t, refused.Code, http.StatusUnauthorized)
	}
	left := s.ask(t, "POST", "/logout", "", "Cookie", cookie.Name+"="+cookie.Value)
	require.Equal(t, http.StatusSeeOther, left.Code)
	require.Negative(t, left.Result().Cookies()[0].MaxAge)
	s.clock.move(12*time.Hour - time.Second)
	require.Equal(t, http.StatusOK, open())
	s.clock.move(time.Second)
	require.Equal(t, http.StatusUnauthorized, open(), "also where the browser keeps it")
	require.NotContains(t, s.log.String(), "s3cret")
}

func TestGuessesAreSlowedDown(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	var last int
	for range 21 {
		last = s.ask(t, "POST", "/login", "token=guess", "Content-Type", "application/x-www-form-urlencoded").Code
	}
	require.Equal(t, http.StatusTooManyRequests, last)
}

func TestEveryWriteIsAudited(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	s.ask(t, "GET", proxyA, "", as("editor")...)
	s.ask(t, "PUT", proxyA, unchanged, as("editor")...)
	s.ask(t, "DELETE", proxyA, "", as("viewer")...)
	s.ask(t, "DELETE", proxyA, "")
	var lines []map[string]any
	for line := range strings.Lines(s.log.String()) {
		var entry map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		if entry["msg"] == "audit" {
			lines = append(lines, entry)
		}
	}
	require.Len(t, lines, 3)
	for i, want := range []map[string]any{
		{"who": "editor", "method": "PUT", "namespace": "default", "name": "a", "status": 200.0},
		{"who": "viewer", "method": "DELETE", "name": "a", "status": 403.0, "problem": "forbidden"},
		{"who": "nobody", "method": "DELETE", "status": 401.0, "problem": "unauthenticated"},
	} {
		for key, value := range want {
			require.Equal(t, value, lines[i][key], key)
		}
	}
}

func kindOf(t *testing.T, body []byte) string {
	t.Helper()
	var document struct{ Type string }
	require.NoError(t, json.Unmarshal(body, &document), string(body))
	return strings.TrimPrefix(document.Type, "urn:egressfleet:problem:")
}
