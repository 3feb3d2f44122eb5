package server_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// get asks a server that runs, and returns what came of it once it has come.
func (l *live) get(t *testing.T, target string, headers ...string) <-chan *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.address+target, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answers := make(chan *http.Response, 1)
	go func() {
		answer, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(r)
		if err == nil {
			answers <- answer
		}
		close(answers)
	}()
	return answers
}

func soon[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-from:
		require.True(t, ok, "it was cut off")
		return v
	case <-time.After(patience):
		require.FailNow(t, "it does not come")
		panic("unreachable")
	}
}

func (l *live) etag(t *testing.T, target string) string {
	t.Helper()
	answer := l.ask(t, "GET", target, "")
	require.Equal(t, 200, answer.Code, answer.Body)
	return answer.Header().Get("ETag")
}

// waiting waits until somebody waits for news.
func (l *live) waiting(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return l.server.Waiting() == 1 }, patience, time.Millisecond)
}

func TestWhoWaitsIsToldWithinASecondOfAChange(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(pool()...), server.Limits{})
	l.tick(t)
	const target = "/v1/discovery?format=txt&wait=30s"
	known := l.etag(t, target)
	answers := l.get(t, target, "If-None-Match", known)
	l.waiting(t)
	l.tick(t) // somebody waits, so this refreshes; nothing has changed
	l.fleet.set(func(f *fakeFleet) { delete(f.proxies, "crawl/v6") })
	l.tick(t)
	answer := soon(t, answers)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "http://203.0.113.7:3128\nhttp://203.0.113.8:3128\n", string(body))
	require.NotEqual(t, known, answer.Header.Get("ETag"))
	require.Zero(t, l.server.Waiting())
}

func TestWhoWaitsForNothingIsToldSoWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(pool()...), server.Limits{})
	l.tick(t)
	answers := l.get(t, "/v1/discovery?wait=7s", "If-None-Match", l.etag(t, "/v1/discovery"))
	select {
	case l.clock.of(7 * time.Second) <- birth:
	case <-time.After(patience):
		require.FailNow(t, "nobody waits")
	}
	answer := soon(t, answers)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotModified, answer.StatusCode)
}

func TestWhoWaitsIsAnsweredAtOnceWithAnotherList(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	for _, headers := range [][]string{nil, {"If-None-Match", `W/"another"`}} {
		require.Equal(t, 200, s.ask(t, "GET", "/v1/discovery?wait=1m", "", headers...).Code)
	}
}

func TestWhoWaitsIsAnsweredWhenTheServerEnds(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(pool()...), server.Limits{})
	l.tick(t)
	answers := l.get(t, "/v1/discovery?wait=1m", "If-None-Match", l.etag(t, "/v1/discovery"))
	l.waiting(t)
	l.stop()
	answer := soon(t, answers)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotModified, answer.StatusCode)
	require.NoError(t, l.wait(t))
}

// event reads one event, and leaves comments out.
func event(t *testing.T, from *bufio.Reader) (kind, id string, list v1.Discovery) {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		require.NoError(t, err)
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			kind = value
		case "id":
			id = value
		case "data":
			require.NoError(t, json.Unmarshal([]byte(value), &list))
			return kind, id, list
		}
	}
}

func TestEveryChangeIsAnEvent(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(pool()...), server.Limits{Handler: time.Millisecond})
	l.tick(t)
	answer := soon(t, l.get(t, "/v1/discovery/events?namespace=default"))
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	from := bufio.NewReader(answer.Body)
	kind, first, list := event(t, from)
	require.Equal(t, "discovery", kind)
	require.Len(t, list.Proxies, 2)
	require.Equal(t, l.etag(t, "/v1/discovery?namespace=default"), first, "the ID is what If-None-Match takes")

	l.fleet.set(func(f *fakeFleet) { delete(f.proxies, "crawl/v6") })
	l.tick(t) // no news for this namespace
	l.fleet.set(func(f *fakeFleet) { f.fail = errors.New("away") })
	l.tick(t)
	_, second, list := event(t, from)
	require.True(t, list.Stale, "that the list is old is news")
	require.Len(t, list.Proxies, 2)
	l.fleet.set(func(f *fakeFleet) { f.fail = nil; delete(f.proxies, "default/a") })
	l.tick(t)
	_, third, list := event(t, from)
	require.Len(t, list.Proxies, 1)
	require.Len(t, map[string]bool{first: true, second: true, third: true}, 3)

	again := soon(t, l.get(t, "/v1/discovery/events?namespace=default", "Last-Event-ID", third))
	defer func() { _ = again.Body.Close() }()
	l.fleet.set(func(f *fakeFleet) { delete(f.proxies, "default/b") })
	l.tick(t)
	l.tick(t)
	_, _, list = event(t, bufio.NewReader(again.Body))
	require.Empty(t, list.Proxies, "what it knew was not told again")

	l.stop()
	_, err := io.Copy(io.Discard, from)
	require.NoError(t, err, "the stream ends in order")
	require.NoError(t, l.wait(t))
}

func TestAPickIsOneOfTheList(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	require.Equal(t, 503, s.ask(t, "GET", "/v1/discovery/pick", "").Code)
	s.server.Refresh(t.Context())
	pick := func(query string) (p v1.Pick) {
		answer := s.ask(t, "GET", "/v1/discovery/pick"+query, "")
		require.Equal(t, 200, answer.Code, answer.Body)
		require.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &p))
		return p
	}
	require.Equal(t, "v6", pick("?namespace=crawl").Proxy.Name)
	require.Equal(t, "sick", pick("?healthy=false").Proxy.Name)
	mine := pick("?sticky=me").Proxy.Name
	require.Equal(t, mine, pick("?sticky=me").Proxy.Name)
	require.Nil(t, pick("?provider=nobody").Proxy)
	require.Equal(t, "http://[2001:db8::7]:3128\n",
		s.ask(t, "GET", "/v1/discovery/pick?format=txt&namespace=crawl", "").Body.String())
	require.Empty(t, s.ask(t, "GET", "/v1/discovery/pick?format=txt&zone=x", "").Body.String())
	s.clock.move(11 * time.Second)
	old := pick("")
	require.True(t, old.Stale)
	require.Equal(t, 11, old.AgeSeconds)
}

func TestDiscoveryTakesFilters(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	names := func(query string) (names []string) {
		answer := s.ask(t, "GET", "/v1/discovery?"+query, "")
		require.Equal(t, 200, answer.Code, answer.Body)
		var list v1.Discovery
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
		for _, e := range list.Proxies {
			names = append(names, e.Name)
		}
		return names
	}
	for query, want := range map[string][]string{
		"":                                 {"v6", "a", "b"},
		"healthy=any":                      {"v6", "a", "b", "sick"},
		"healthy=false":                    {"sick"},
		"namespace=default":                {"a", "b"},
		"labels=team%3Dcrawlers":           {"v6", "a", "b"},
		"labels=team+notin+(crawlers)":     nil,
		"provider=gcp&region=europe-west1": {"v6", "a", "b"},
		"zone=elsewhere":                   nil,
		"limit=2":                          {"v6", "a"},
		"limit=0":                          {"v6", "a", "b"},
	} {
		require.Equal(t, want, names(query), query)
	}
	require.ElementsMatch(t, names(""), names("shuffle=true"))
	require.Len(t, names("shuffle=true&limit=2"), 2)
	seen := map[string]bool{}
	for range 200 {
		seen[strings.Join(names("shuffle=true"), " ")] = true
	}
	require.Len(t, seen, 6, "every order comes")
	etag := func(query string) string { return s.ask(t, "GET", "/v1/discovery?"+query, "").Header().Get("ETag") }
	one := etag("shuffle=true")
	require.Equal(t, one, etag("shuffle=true"))
	require.NotEqual(t, etag("limit=1"), etag("limit=2"))
}

func TestWhatCannotBeAskedForIsNamed(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]refusal{
		"healthy=yes":   {422, "invalid-field", "healthy", "yes"},
		"labels=a+in+b": {422, "invalid-field", "labels", "a in b"},
		"limit=-1":      {400, "wrong-type", "limit", "-1"},
		"limit=many":    {400, "wrong-type", "limit", "many"},
		"limit=100001":  {400, "wrong-type", "limit", "100001"},
		"shuffle=1":     {400, "wrong-type", "shuffle", "1"},
		"wait=soon":     {422, "invalid-field", "wait", "soon"},
		"wait=61s":      {422, "invalid-field", "wait", "61s"},
		"wait=-1s":      {422, "invalid-field", "wait", "-1s"},
		"format=":       {422, "invalid-field", "format", ""},
		"zone=a&zone=b": {400, "duplicate-field", "zone", "a, b"},
		"helthy=true":   {400, "unknown-field", "helthy", "true"},
	} {
		s := newStage(pool()...)
		s.server.Refresh(t.Context())
		require.Equal(t, want, told(t, s.ask(t, "GET", "/v1/discovery?"+query, "")), query)
	}
	s := newStage()
	require.Equal(t, refusal{422, "invalid-field", "format", "pac"},
		told(t, s.ask(t, "GET", "/v1/discovery/pick?format=pac", "")))
	long := s.ask(t, "GET", "/v1/discovery/pick?sticky="+strings.Repeat("x", 1025), "")
	require.Equal(t, "sticky", told(t, long).field)
}
