package server_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

const pageA = "/proxies/default/a"

// form is a request that a browser sends from the page itself.
var form = []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}

// session is the cookie of a browser that has logged in.
func session(name string) []string {
	return []string{"Cookie", "egressfleet_session=" + sessionOf(name)}
}

// opened is a stage whose list is loaded.
func opened(t *testing.T, proxies ...v1.Proxy) *stage {
	t.Helper()
	s := newStage(proxies...)
	s.server.Refresh(t.Context())
	return s
}

func TestThePageShowsTheFleet(t *testing.T) {
	t.Parallel()
	s := opened(t, pool()...)
	s.fleet.checks = map[string]v1.ProviderCheck{"gcp": {Supported: true, CheckedAt: birth, Targets: []v1.ProviderTarget{
		{Target: "europe-west1", Ready: false, Reason: "QuotaExceeded", Message: "no address is left"},
	}}}
	s.fleet.orphans = v1.Collection{EndedAt: birth, Providers: []v1.Collected{{Provider: "gcp", Listed: 41, Note: "many"}}}
	answer := s.ask(t, "GET", "/", "")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	for _, want := range []string{
		`href="/proxies/default/a"`, "203.0.113.7:3128", "6 proxies", "no address is left", `<td class="r">41</td>`, "many",
	} {
		require.Contains(t, answer.Body.String(), want)
	}
	require.Equal(t, "text/html; charset=UTF-8", answer.Header().Get("Content-Type"))
	require.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
}

func TestNoPageHasAnythingInline(t *testing.T) {
	t.Parallel()
	s := opened(t, pool()...)
	for _, target := range []string{"/", pageA, pageA + "/delete", "/proxies/default/nobody"} {
		answer := s.ask(t, "GET", target, "")
		policy := answer.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self'", target)
		require.Contains(t, policy, "frame-ancestors 'none'", target)
		require.NotContains(t, policy, "unsafe", target)
		for _, inline := range []string{`<style`, `\sstyle=`, `<script>`, `\son[a-z]+=`, `javascript:`, `hx-on`} {
			require.NotRegexp(t, inline, answer.Body.String(), target)
		}
	}
}

func TestThePageIsFilteredByItsAddress(t *testing.T) {
	t.Parallel()
	s := opened(t, pool()...)
	name := regexp.MustCompile(`<tr id="p-([^"]+)"`)
	for query, want := range map[string][]string{
		"q=DEFAULT%2FB":              {"default.b"},
		"q=crawl%2F":                 {"crawl.v6"},
		"q=203.0.113.10+team":        {"default.sick"},
		"q=nothing+at+all":           nil,
		"namespace=crawl":            {"crawl.v6"},
		"health=false":               {"default.sick"},
		"phase=Pending&provider=gcp": {"default.pending"},
		"labels=team%3Dnobody":       nil,
		"reason=Created&q=held":      {"default.held"},
	} {
		answer := s.ask(t, "GET", "/?"+query, "")
		require.Equal(t, http.StatusOK, answer.Code, query)
		var got []string
		for _, found := range name.FindAllStringSubmatch(answer.Body.String(), -1) {
			got = append(got, found[1])
		}
		require.Equal(t, want, got, query)
	}
	answer := s.ask(t, "GET", "/?phase=Pending&q=&health=", "")
	require.Equal(t, http.StatusSeeOther, answer.Code)
	require.Equal(t, "/?phase=Pending", answer.Header().Get("Location"))
	answer = s.ask(t, "GET", "/?phase=Pending&q=", "", "HX-Request", "true")
	require.Equal(t, http.StatusOK, answer.Code)
	require.Equal(t, "/?phase=Pending", answer.Header().Get("HX-Replace-Url"))
	for _, query := range []string{"phase=Nonsense", "labels=((", "continue=x", "colour=red", "q=a&q=b"} {
		answer := s.ask(t, "GET", "/?"+query, "")
		require.GreaterOrEqual(t, answer.Code, 400, query)
		require.Less(t, answer.Code, 500, query)
		require.Contains(t, answer.Body.String(), "<h1", query)
	}
}

const large = 2000

func largeFleet() []v1.Proxy {
	proxies := make([]v1.Proxy, large)
	for i := range proxies {
		proxies[i] = running("default", "p"+strconv.Itoa(10000+i), "203.0.113.7")
	}
	return proxies
}

func TestALargeFleetComesInParts(t *testing.T) {
	t.Parallel()
	s := opened(t, largeFleet()...)
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`)
	seen, target := 0, "/?provider=gcp"
	for target != "" {
		body := s.ask(t, "GET", target, "").Body.String()
		rows := strings.Count(body, "<tr id=")
		require.LessOrEqual(t, rows, 100)
		seen, target = seen+rows, ""
		if found := next.FindStringSubmatch(body); found != nil {
			target = strings.ReplaceAll(found[1], "&amp;", "&")
			require.Contains(t, target, "provider=gcp")
		}
	}
	require.Equal(t, large, seen)
}

// BenchmarkThePageOfALargeFleet is about a second, which it must stay far below.
func BenchmarkThePageOfALargeFleet(b *testing.B) {
	s := newStage(largeFleet()...)
	s.server.Refresh(b.Context())
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), "GET", "http://localhost/?q=p1&provider=gcp", nil)
		answer := httptest.NewRecorder()
		s.server.Handler().ServeHTTP(answer, r)
		require.Equal(b, http.StatusOK, answer.Code)
	}
}

func TestThePageOfAProxyTellsItsLife(t *testing.T) {
	t.Parallel()
	s := opened(t, pool()...)
	s.fleet.events = []v1.Event{
		{At: birth, Phase: v1.PhasePending, Reason: "Applied"},
		{At: birth, Phase: v1.PhaseProvisioning, Reason: "QuotaExceeded", Class: "Quota", Detail: "no <address> is left"},
	}
	body := s.ask(t, "GET", pageA, "").Body.String()
	require.Contains(t, body, "no &lt;address&gt; is left")
	require.Less(t, strings.Index(body, `<th scope="row">QuotaExceeded`), strings.Index(body, `<th scope="row">Applied`))
	require.Contains(t, body, "<b>Last error:</b> QuotaExceeded")
	require.Contains(t, body, `action="/proxies/default/a/hold"`)
	require.Equal(t, http.StatusNotFound, s.ask(t, "GET", "/proxies/default/nobody", "").Code)
	require.Equal(t, http.StatusUnprocessableEntity, s.ask(t, "GET", "/proxies/default/..%2Fa", "").Code)

	s.fleet.set(func(f *fakeFleet) { f.proxies["default/a"] = running("default", "a", "203.0.113.7") })
	require.NotContains(t, s.ask(t, "GET", pageA, "").Body.String(), "user-data")
}

func TestACloudInitIsOnNoPage(t *testing.T) {
	t.Parallel()
	p := running("default", "a", "203.0.113.7")
	p.Spec.CloudInit = v1.CloudInit{Inline: sentinel}
	s := opened(t, p)
	for _, target := range []string{"/", "/?q=" + sentinel, pageA, pageA + "/delete"} {
		body := s.ask(t, "GET", target, "").Body.String()
		require.NotContains(t, strings.ReplaceAll(body, `value="`+sentinel, ""), `>`+sentinel, target)
		require.NotContains(t, body, "cloudInit", target)
	}
	require.Contains(t, s.ask(t, "GET", "/?q="+sentinel, "").Body.String(), "No proxy fits", "it is not searched either")
}

func TestAFormAsksForWhatTheOperationDoes(t *testing.T) {
	t.Parallel()
	for action, c := range map[string]struct {
		sent, told string
	}{
		"hold":    {"reason=billing&for=1h", "hold 1h: billing"},
		"resume":  {"", "resume: asked for through the API"},
		"retry":   {"reason=now", "retry: now"},
		"replace": {"reason=banned", "replace: banned"},
	} {
		s := opened(t, pool()...)
		answer := s.ask(t, "POST", pageA+"/"+action, c.sent+"&key=KEY", form...)
		require.Equal(t, http.StatusSeeOther, answer.Code, answer.Body)
		require.Equal(t, pageA+"?done="+action, answer.Header().Get("Location"))
		require.Equal(t, []string{c.told}, s.fleet.told)
		require.True(t, strings.HasPrefix(s.fleet.ids[0], "KEY-"), "the form names the request: %s", s.fleet.ids[0])
		require.Contains(t, s.ask(t, "GET", pageA+"?done="+action, "").Body.String(), `role="status" tabindex="-1" autofocus`)
	}
	s := opened(t, pool()...)
	require.Equal(t, http.StatusBadRequest, s.ask(t, "POST", pageA+"/delete", "", form...).Code, "it was not asked")
	require.Equal(t, http.StatusUnprocessableEntity, s.ask(t, "POST", pageA+"/hold", "key=K&for=soon", form...).Code)
	require.Equal(t, http.StatusNotFound, s.ask(t, "POST", pageA+"/explode", "key=K", form...).Code)
	require.Equal(t, http.StatusBadRequest, s.ask(t, "POST", pageA+"/hold", "%zz", form...).Code)
	require.Empty(t, s.fleet.told)
	require.Equal(t, http.StatusSeeOther, s.ask(t, "POST", pageA+"/delete", "sure=yes&reason=done", form...).Code)
	require.Equal(t, []string{"done"}, s.fleet.reasons)
	require.Contains(t, s.ask(t, "GET", pageA+"/delete", "").Body.String(), "Delete a?")
	require.Equal(t, http.StatusSeeOther, s.ask(t, "GET", pageA+"/hold", "").Code)
}

func TestNoOtherSiteSendsAForm(t *testing.T) {
	t.Parallel()
	typed := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for name, sent := range map[string][]string{
		"of another site":            {"Sec-Fetch-Site", "cross-site"},
		"of a sibling":               {"Sec-Fetch-Site", "same-site"},
		"of another origin":          {"Origin", "http://evil.test"},
		"of an origin that is none":  {"Origin", "null"},
		"that nobody says sent it":   {},
		"of another port":            {"Origin", "http://127.0.0.1:9"},
		"of an origin that is close": {"Origin", "http://127.0.0.1.evil.test"},
	} {
		open := opened(t, pool()...)
		answer := open.ask(t, "POST", pageA+"/hold", "key=K", append(typed, sent...)...)
		require.Equal(t, http.StatusForbidden, answer.Code, name)
		require.Contains(t, answer.Body.String(), "<h1", name)
		require.Empty(t, open.fleet.told, name)

		closed := guarded(t, pool()...)
		headers := append(append(typed, sent...), session("editor")...)
		require.Equal(t, http.StatusForbidden, closed.ask(t, "POST", pageA+"/hold", "key=K", headers...).Code, name)
		require.Empty(t, closed.fleet.told, name)
		headers = append(append(typed, sent...), as("editor")...)
		require.Equal(t, http.StatusForbidden, closed.ask(t, "POST", pageA+"/hold", "key=K", headers...).Code, name)
		require.Empty(t, closed.fleet.told, name)
	}
	s := guarded(t, pool()...)
	own := append(append([]string{}, form...), session("editor")...)
	require.Equal(t, http.StatusSeeOther, s.ask(t, "POST", pageA+"/hold", "key=K", own...).Code)
	require.Equal(t, http.StatusSeeOther, s.ask(t, "POST", pageA+"/hold", "key=K",
		append(append(typed, "Origin", "http://127.0.0.1"), session("editor")...)...).Code)
}

func TestWithoutTokensOnlyThisMachineIsAnswered(t *testing.T) {
	t.Parallel()
	s := opened(t, pool()...)
	for host, want := range map[string]int{
		"127.0.0.1:8080": 200, "localhost": 200, "LOCALHOST:8080": 200, "localhost.:8080": 200, "fleet.localhost": 200,
		"[::1]:8080": 200, "[::1]": 200, "192.0.2.7": 200,
		"evil.test": 403, "evil.test:8080": 403, "localhost.evil.test": 403, "127.0.0.1.evil.test": 403,
		"notlocalhost": 403, "": 403, "x": 403,
	} {
		for _, target := range []string{"/", pageA, "/v1/discovery", "/v1/proxies", "/docs"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+target, nil)
			r.Host = host
			answer := httptest.NewRecorder()
			s.server.Handler().ServeHTTP(answer, r)
			require.Equal(t, want, answer.Code, "%s %s", host, target)
		}
	}
	answer := s.ask(t, "POST", proxyA+"/hold", "", "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, answer.Code, "nor is a page of another site answered")
	require.Empty(t, s.fleet.told)
}

func TestThePageKeepsToWhatATokenMay(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	answer := s.ask(t, "GET", "/", "")
	require.Equal(t, http.StatusUnauthorized, answer.Code)
	require.Contains(t, answer.Body.String(), `action="/login"`)
	require.Equal(t, "true", answer.Header().Get("HX-Refresh"))
	answer = s.ask(t, "GET", "/", "", session("crawler")...)
	require.Equal(t, http.StatusForbidden, answer.Code)
	require.Contains(t, answer.Body.String(), "has not the scope read")
	require.Contains(t, answer.Body.String(), "Nothing was changed")

	viewed := s.ask(t, "GET", pageA, "", session("viewer")...).Body.String()
	require.NotContains(t, viewed, `/hold"`)
	require.Contains(t, viewed, "Your token may look")
	answer = s.ask(t, "POST", pageA+"/hold", "key=K", append(form, session("viewer")...)...)
	require.Equal(t, http.StatusForbidden, answer.Code)
	require.Contains(t, answer.Body.String(), "has not the scope write")
	require.Equal(t, http.StatusForbidden, s.ask(t, "GET", pageA+"/delete", "", session("viewer")...).Code)
	require.Empty(t, s.fleet.told)

	part := s.ask(t, "GET", "/", "", session("crawl-only")...).Body.String()
	require.Contains(t, part, `p-crawl.v6`)
	require.NotContains(t, part, `p-default.`)
	require.Contains(t, part, "1 proxy", "what it may not see is not counted")
	require.Contains(t, part, "for a part of the fleet")
	require.Equal(t, http.StatusForbidden, s.ask(t, "GET", pageA, "", session("crawl-only")...).Code)
	require.Equal(t, http.StatusNotFound, s.ask(t, "GET", pageA, "", session("gold-only")...).Code)
	require.Equal(t, http.StatusNotFound, s.ask(t, "GET", pageA+"/delete", "", session("gold-only")...).Code)
	require.Equal(t, http.StatusUnauthorized, s.ask(t, "GET", "/assets/page.css", "").Code)
}

func TestALoginLeadsToThePageThatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	body := s.ask(t, "GET", "/?phase=Running&q=a", "").Body.String()
	require.Contains(t, body, `name="next" value="/?phase=Running&amp;q=a"`)
	require.NotContains(t, body, "http-equiv")
	require.Contains(t, s.ask(t, "GET", pageA, "").Body.String(), `value="`+pageA+`"`)
	require.Contains(t, s.ask(t, "GET", "/", "", "Sec-Fetch-Site", "cross-site").Body.String(), `http-equiv="refresh"`)
	for next, want := range map[string]string{
		"": "/", "/": "/", "/?q=x": "/?q=x", pageA: pageA, "//evil.test": "/", "/\\evil.test": "/", "https://evil.test/": "/",
		"/v1/proxies": "/", "/logout": "/", "/proxies/..//evil.test": "/proxies/..//evil.test",
	} {
		answer := s.ask(t, "POST", "/login", "token="+secretOf("viewer")+"&next="+url.QueryEscape(next), form...)
		require.Equal(t, http.StatusSeeOther, answer.Code)
		require.Equal(t, want, answer.Header().Get("Location"), next)
	}
}

func TestThePageSaysWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	answer := s.ask(t, "GET", "/", "")
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.NotEmpty(t, answer.Header().Get("Retry-After"))
	require.Contains(t, answer.Body.String(), "No list has been loaded yet")

	s.server.Refresh(t.Context())
	s.fleet.set(func(f *fakeFleet) { f.fail = fleet.ErrUnavailable })
	s.server.Refresh(t.Context())
	body := s.ask(t, "GET", "/", "").Body.String()
	require.Contains(t, body, "The list could not be refreshed")
	require.Contains(t, body, "It could not be asked for just now")
	require.Contains(t, body, `p-default.a`)
	require.Equal(t, http.StatusServiceUnavailable, s.ask(t, "GET", pageA, "").Code)

	s.fleet.set(func(f *fakeFleet) { f.fail = errors.New("a secret fault") })
	answer = s.ask(t, "GET", pageA, "")
	require.Equal(t, http.StatusInternalServerError, answer.Code)
	require.NotContains(t, answer.Body.String(), "secret fault")
	require.Contains(t, s.log.String(), "a secret fault")
}

func TestAssetsAreKeptByTheBrowser(t *testing.T) {
	t.Parallel()
	s := opened(t)
	body := s.ask(t, "GET", "/", "").Body.String()
	loaded := regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllStringSubmatch(body, -1)
	require.Len(t, loaded, 3)
	for _, l := range loaded {
		u, err := url.Parse(l[1])
		require.NoError(t, err)
		answer := s.ask(t, "GET", u.String(), "")
		require.Equal(t, http.StatusOK, answer.Code, l[1])
		require.Contains(t, answer.Header().Get("Cache-Control"), "immutable")
		require.NotEmpty(t, u.Query().Get("v"))
	}
	for _, target := range []string{"/assets/htmx.LICENSE", "/assets/..%2Fpage.go", "/assets/", "/assets/x"} {
		require.Equal(t, http.StatusNotFound, s.ask(t, "GET", target, "").Code, target)
	}
}
