package server_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/egressfleet/egressfleet/api/server"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// quiet is a stage whose log has no line for what reads, as that of a worker.
func quiet(t *testing.T, keys server.Keys) *stage {
	t.Helper()
	s := newStageWith(keys, pool()...)
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.server = server.New(s.fleet, server.Options{Logger: log, Clock: s.clock, Keys: keys})
	s.server.Refresh(t.Context())
	return s
}

// question is a request for the list.
func question(t *testing.T, method, target string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	if strings.HasPrefix(target, "/") {
		r.Host = "127.0.0.1"
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// alike asks for the list by both ways, and returns the answer, and whether it was handed
// out. What was handed out must be what the route answers.
func (s *stage) alike(t *testing.T, r *http.Request) (answer *httptest.ResponseRecorder, handed bool) {
	t.Helper()
	short, long := httptest.NewRecorder(), httptest.NewRecorder()
	handed = s.server.HandOut(short, r.Clone(r.Context()))
	s.server.Route(long, r)
	if handed {
		require.Equal(t, long.Code, short.Code)
		require.Equal(t, long.Header(), short.Header())
		require.Equal(t, long.Body.String(), short.Body.String())
	} else {
		require.Empty(t, short.Header(), "what is left to the route is not touched")
		require.False(t, short.Flushed || short.Body.Len() > 0)
	}
	return long, handed
}

const (
	listPath   = "/v1/discovery"
	theirTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

func TestWhatIsHandedOutIsWhatTheRouteAnswers(t *testing.T) {
	t.Parallel()
	s := quiet(t, nil)
	tag := s.ask(t, "GET", listPath, "").Header().Get("ETag")
	for name, c := range map[string]struct {
		query   string
		headers []string
		status  int
	}{
		"by itself":               {"", nil, 200},
		"an empty query":          {"?", nil, 200},
		"as json":                 {"?format=json", nil, 200},
		"as txt":                  {"?format=txt", nil, 200},
		"as csv":                  {"?format=csv", nil, 200},
		"as pac":                  {"?format=pac", nil, 200},
		"as env":                  {"?format=env", nil, 200},
		"for prometheus":          {"?format=prometheus", nil, 200},
		"known":                   {"", []string{"If-None-Match", tag}, 304},
		"known as txt":            {"?format=txt", []string{"If-None-Match", "*"}, 304},
		"known, without the W/":   {"", []string{"If-None-Match", strings.TrimPrefix(tag, "W/")}, 304},
		"one of those known":      {"", []string{"If-None-Match", `"x", ` + tag}, 304},
		"known in another format": {"?format=txt", []string{"If-None-Match", tag}, 200},
		"something else is known": {"", []string{"If-None-Match", `"%22,"`}, 200},
		"nothing is known":        {"", []string{"If-None-Match", ""}, 200},
		"a part":                  {"", []string{"Range", "bytes=0-1", "Accept", "text/html"}, 200},
		"a token that none needs": {"", as("boss"), 200},
		"two lists of known ones": {"", []string{"If-None-Match", `"x"`, "If-None-Match", "*"}, 304},
		"the page of another site, which a GET does not harm": {"", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		"one If-Match": {"", []string{"If-Match", `"1"`}, 200},
	} {
		answer, handed := s.alike(t, question(t, "GET", listPath+c.query, c.headers...))
		require.True(t, handed, name)
		require.Equal(t, c.status, answer.Code, name)
		require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"), name)
	}
}

func TestWhatIsLeftToTheRoute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, target string
		headers        []string
		status         int
	}{
		"a change":                {"POST", listPath, nil, 405},
		"another path":            {"GET", listPath + "/pick", nil, 200},
		"a slash too much":        {"GET", listPath + "/", nil, 404},
		"a path that is encoded":  {"GET", "/v1%2Fdiscovery", nil, 404},
		"a filter":                {"GET", listPath + "?namespace=default", nil, 200},
		"a format and a filter":   {"GET", listPath + "?format=txt&namespace=default", nil, 200},
		"a limit":                 {"GET", listPath + "?limit=1", nil, 200},
		"another order":           {"GET", listPath + "?shuffle=true", nil, 200},
		"a site":                  {"GET", listPath + "?for=shop.example", nil, 200},
		"a wait":                  {"GET", listPath + "?wait=1s", nil, 200},
		"a token in the query":    {"GET", listPath + "?token=x", nil, 200},
		"no such format":          {"GET", listPath + "?format=xml", nil, 422},
		"an empty format":         {"GET", listPath + "?format=", nil, 422},
		"two formats":             {"GET", listPath + "?format=txt&format=txt", nil, 400},
		"another parameter":       {"GET", listPath + "?formats=txt", nil, 400},
		"a query that is none":    {"GET", listPath + "?%zz", nil, 400},
		"a query that is encoded": {"GET", listPath + "?format=%74xt", nil, 200},
		"a trace":                 {"GET", listPath, []string{"Traceparent", theirTrace}, 200},
		"two lines of one header": {"GET", listPath, []string{"If-Match", "a", "If-Match", "b"}, 400},
		"another machine's name":  {"GET", "http://fleet.example" + listPath, nil, 403},
	} {
		answer, handed := quiet(t, nil).alike(t, question(t, c.method, c.target, c.headers...))
		require.False(t, handed, name)
		require.Equal(t, c.status, answer.Code, name)
	}
	s := quiet(t, nil)
	r := question(t, "GET", listPath)
	r.ContentLength, r.Body = 2, io.NopCloser(strings.NewReader("{}"))
	_, handed := s.alike(t, r)
	require.False(t, handed, "a body")
	traced := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1},
	}))
	_, handed = s.alike(t, question(t, "GET", listPath).WithContext(traced))
	require.False(t, handed, "a trace that this process is in")
	_, handed = newStage(pool()...).refreshed(t).alike(t, question(t, "GET", listPath))
	require.False(t, handed, "a log of every request")
}

func (s *stage) refreshed(t *testing.T) *stage {
	t.Helper()
	s.server.Refresh(t.Context())
	return s
}

func TestAListThatMayBeUntrueIsNotHandedOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age    time.Duration
		fails  bool
		handed bool
		status int
	}{
		"fresh":                     {0, false, true, 200},
		"as old as a list may be":   {10 * time.Second, false, true, 200},
		"older than it should be":   {10*time.Second + 1, false, false, 200},
		"a refresh has failed":      {0, true, false, 200},
		"too old to be known":       {time.Minute + 1, false, false, 503},
		"of a clock that went back": {-time.Hour, false, true, 200},
	} {
		s := quiet(t, nil)
		s.clock.move(c.age)
		if c.fails {
			s.fleet.fail = fleet.ErrUnavailable
			s.server.Refresh(t.Context())
		}
		for _, query := range []string{"", "?format=txt"} {
			answer, handed := s.alike(t, question(t, "GET", listPath+query))
			require.Equal(t, c.status, answer.Code, name)
			require.Equal(t, c.handed, handed, name)
		}
	}
	s := newStage(pool()...)
	s.server = server.New(s.fleet, server.Options{Clock: s.clock})
	answer, handed := s.alike(t, question(t, "GET", listPath))
	require.False(t, handed, "there is none yet")
	require.Equal(t, 503, answer.Code)
}

func TestWhoIsHandedTheWholeList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers []string
		handed  bool
		status  int
	}{
		"a crawler":                    {as("crawler"), true, 200},
		"who may more":                 {as("boss"), true, 200},
		"nobody":                       {nil, false, 401},
		"an unknown token":             {[]string{"Authorization", "Bearer x"}, false, 401},
		"an empty token":               {[]string{"Authorization", "Bearer  "}, false, 401},
		"another scheme":               {[]string{"Authorization", "Basic " + secretOf("boss")}, false, 401},
		"two tokens":                   {append(as("boss"), as("boss")...), false, 401},
		"a scheme in small letters":    {[]string{"Authorization", "bearer " + secretOf("boss")}, false, 200},
		"a token for one namespace":    {as("crawl-only"), false, 200},
		"a token for some labels":      {as("gold-only"), false, 200},
		"a session":                    {[]string{"Cookie", "egressfleet_session=" + sessionOf("boss")}, false, 200},
		"a token, in spite of cookies": {append(as("boss"), "Cookie", "egressfleet_session=x"), true, 200},
	} {
		answer, handed := quiet(t, guarded(t).keys).alike(t, question(t, "GET", listPath, c.headers...))
		require.Equal(t, c.status, answer.Code, name)
		require.Equal(t, c.handed, handed, name)
	}
}

func TestAnAllowanceIsUsedUpByWhatIsHandedOut(t *testing.T) {
	t.Parallel()
	s := quiet(t, guarded(t).keys)
	ask := func(query string) int { return s.ask(t, "GET", listPath+query, "", as("hasty")...).Code }
	s.fleet.fail = fleet.ErrUnavailable
	s.server.Refresh(t.Context())
	require.Equal(t, 200, ask(""), "by the route, which takes the only request")
	s.fleet.fail = nil
	s.server.Refresh(t.Context())
	require.Equal(t, 429, ask(""))
	s.clock.move(2 * time.Second)
	require.Equal(t, 200, ask("?format=txt"))
	require.Equal(t, 429, ask("?format=txt"))
}
