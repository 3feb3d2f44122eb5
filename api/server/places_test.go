package server_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// rewrite changes the file of tokens, lets the second pass after which it is looked at
// again, and has the server look.
func (l *live) rewrite(t *testing.T, path, old, with string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	changed := strings.Replace(string(text), old, with, 1)
	require.NotEqual(t, string(text), changed)
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
	l.clock.move(time.Second)
	select {
	case l.clock.of(server.KeysPeriod) <- birth:
	case <-time.After(patience):
		require.FailNow(t, "nobody looks at the tokens")
	}
}

// guardedLive is a server that runs and requires tokens, whose time the test moves.
func guardedLive(t *testing.T, proxies ...v1.Proxy) (l *live, path string) {
	t.Helper()
	s := newStage(proxies...)
	path, err := guardsFile(t.TempDir())
	require.NoError(t, err)
	keys, err := access.Open(path, nil, s.clock.Now)
	require.NoError(t, err)
	s.keys = keys
	l = run(t, s, server.Limits{})
	l.tick(t)
	return l, path
}

// entryOf is the entry of a token in the file.
func entryOf(t *testing.T, path, name string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "- {name: "+name+",") {
			return line
		}
	}
	require.FailNow(t, "there is no such token", name)
	return ""
}

// theRest is what comes until a stream ends in order.
func theRest(t *testing.T, from io.Reader) string {
	t.Helper()
	ended := make(chan string, 1)
	go func() {
		text, err := io.ReadAll(from)
		if err == nil {
			ended <- string(text)
		}
		close(ended)
	}()
	return soon(t, ended)
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(entry string) string{
		"taken away": func(string) string { return "" },
		"restricted": func(entry string) string { return strings.Replace(entry, "}", ", namespaces: [crawl]}", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, path := guardedLive(t, pool()...)
			answer := soon(t, l.get(t, "/v1/discovery/events", as("crawler")...))
			defer func() { _ = answer.Body.Close() }()
			require.Equal(t, http.StatusOK, answer.StatusCode)
			from := bufio.NewReader(answer.Body)
			event(t, from)
			entry := entryOf(t, path, "crawler")
			l.rewrite(t, path, entry, change(entry))
			require.NotContains(t, theRest(t, from), "event:")
		})
	}
}

func TestALongPollEndsWithItsToken(t *testing.T) {
	t.Parallel()
	l, path := guardedLive(t, pool()...)
	wait := func(name string) <-chan *http.Response {
		known := l.ask(t, "GET", "/v1/discovery", "", as(name)...).Header().Get("ETag")
		return l.get(t, "/v1/discovery?wait=1m", append(as(name), "If-None-Match", known)...)
	}
	removed, changed, kept := wait("crawler"), wait("crawl-only"), wait("viewer")
	require.Eventually(t, func() bool { return l.server.Waiting() == 3 }, patience, time.Millisecond)
	l.rewrite(t, path, entryOf(t, path, "crawler"), "")
	answer := soon(t, removed)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)

	l.rewrite(t, path, "namespaces: [crawl]", "namespaces: [other]")
	answer = soon(t, changed)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotModified, answer.StatusCode, "it is known still, and asks again")
	require.Equal(t, 1, l.server.Waiting(), "nobody else is disturbed")

	l.fleet.set(func(f *fakeFleet) { f.proxies = nil })
	l.tick(t)
	answer = soon(t, kept)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func TestAWriteThatWaitsIsAnsweredWhenItsTokenIsTakenAway(t *testing.T) {
	t.Parallel()
	l, path := guardedLive(t, pool()...)
	answers := make(chan int, 1)
	go func() {
		answers <- l.ask(t, "PUT", "/v1/namespaces/default/proxies/new?wait=1m", minimal, as("editor")...).Code
	}()
	select {
	case l.clock.of(server.LookEvery) <- birth: // it waits
	case <-time.After(patience):
		require.FailNow(t, "it does not wait")
	}
	l.rewrite(t, path, entryOf(t, path, "editor"), "")
	require.Equal(t, http.StatusCreated, soon(t, answers), "what was asked for stands")
}

func TestAStreamEndsWithTheSessionOfItsBrowser(t *testing.T) {
	t.Parallel()
	l, _ := guardedLive(t, pool()...)
	short := l.keys.Session(secretOf("viewer"), birth.Add(time.Second))
	answer := soon(t, l.get(t, "/v1/discovery/events", "Cookie", "egressfleet_session="+short))
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	theRest(t, answer.Body)
}

func TestOneTokenDoesNotTakeEveryPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all, own int
		want     string
	}{
		"nobody waits":                     {0, 0, ""},
		"the last of its own":              {server.OwnPlaces - 1, server.OwnPlaces - 1, ""},
		"one more than its own":            {server.OwnPlaces, server.OwnPlaces, "too-many-requests"},
		"its own while others have theirs": {server.AllPlaces, server.OwnPlaces, "too-many-requests"},
		"the last of all":                  {server.AllPlaces - 1, 0, ""},
		"one more than all":                {server.AllPlaces, 0, "unavailable"},
	} {
		require.Equal(t, c.want, server.NoPlace(c.all, c.own), name)
	}
}

func TestWhoHasTooManyStreamsIsRefusedAndOthersAreNot(t *testing.T) {
	t.Parallel()
	l, _ := guardedLive(t, pool()...)
	crawler := access.With(t.Context(), l.keys.Find(secretOf("crawler")))
	require.NoError(t, l.server.TakePlaces(crawler, server.OwnPlaces))
	require.Error(t, l.server.TakePlaces(crawler, 1))
	known := l.ask(t, "GET", "/v1/discovery", "", as("crawler")...).Header().Get("ETag")
	for target, headers := range map[string][]string{
		"/v1/discovery/events":  as("crawler"),
		"/v1/discovery?wait=1m": append(as("crawler"), "If-None-Match", known),
	} {
		answer := l.ask(t, "GET", target, "", headers...)
		require.Equal(t, http.StatusTooManyRequests, answer.Code, target)
		require.Equal(t, "too-many-requests", kindOf(t, answer.Body.Bytes()))
		require.Contains(t, answer.Body.String(), "the token crawler waits for changes 250 times already")
		require.Equal(t, "5", answer.Header().Get("Retry-After"))
	}
	require.Equal(t, http.StatusOK, l.ask(t, "GET", "/v1/discovery?wait=1m", "", as("crawler")...).Code, "what is there")
	for _, name := range []string{"viewer", "editor", "boss"} {
		require.NoError(t, l.server.TakePlaces(access.With(t.Context(), l.keys.Find(secretOf(name))), server.OwnPlaces), name)
	}
	answer := l.ask(t, "GET", "/v1/discovery/events", "", as("gold-only")...)
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Equal(t, "unavailable", kindOf(t, answer.Body.Bytes()))
	require.Equal(t, "5", answer.Header().Get("Retry-After"))
}

func TestWithoutTokensOneBoundHoldsForAll(t *testing.T) {
	t.Parallel()
	l := run(t, newStage(pool()...), server.Limits{})
	l.tick(t)
	for range server.OwnPlaces + 1 {
		answer := soon(t, l.get(t, "/v1/discovery/events"))
		require.Equal(t, http.StatusOK, answer.StatusCode)
		t.Cleanup(func() { _ = answer.Body.Close() })
	}
}

func TestAPlaceIsFreeAgainWhenItsStreamEnds(t *testing.T) {
	t.Parallel()
	l, _ := guardedLive(t, pool()...)
	crawler := access.With(t.Context(), l.keys.Find(secretOf("crawler")))
	require.NoError(t, l.server.TakePlaces(crawler, server.OwnPlaces-1))
	answer := soon(t, l.get(t, "/v1/discovery/events", as("crawler")...))
	require.Equal(t, http.StatusTooManyRequests, l.ask(t, "GET", "/v1/discovery/events", "", as("crawler")...).Code)
	require.NoError(t, answer.Body.Close())
	require.Eventually(t, func() bool { return l.server.Waiting() == server.OwnPlaces-1 }, patience, time.Millisecond)
	require.NoError(t, l.server.TakePlaces(crawler, 1))
}
