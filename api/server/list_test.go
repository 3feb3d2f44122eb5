package server_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

type page struct {
	Items    []v1.Proxy
	Continue string
}

func (s *stage) page(t *testing.T, target string, headers ...string) (p page) {
	t.Helper()
	answer := s.ask(t, "GET", target, "", headers...)
	require.Equal(t, 200, answer.Code, answer.Body)
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &p))
	return p
}

func (p page) names() (names []string) {
	for _, item := range p.Items {
		names = append(names, item.Metadata.Namespace+"/"+item.Metadata.Name)
	}
	return names
}

func TestAListTakesFilters(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	all := []string{"crawl/v6", "default/a", "default/b", "default/held", "default/pending", "default/sick"}
	for query, want := range map[string][]string{
		"":                          all,
		"labels=team%3Dcrawlers":    all,
		"labels=team%21%3Dcrawlers": nil,
		"provider=gcp":              all,
		"provider=other":            nil,
		"region=europe-west1":       all,
		"phase=Pending":             {"default/pending"},
		"health=false":              {"default/sick"},
		"reason=Created":            all,
		"reason=QuotaExceeded":      nil,
		"health=true&phase=Running": {"crawl/v6", "default/a", "default/b", "default/held"},
		"health=unknown":            nil,
	} {
		require.Equal(t, want, s.page(t, "/v1/proxies?"+query).names(), query)
	}
	require.Equal(t, all[1:], s.page(t, "/v1/namespaces/default/proxies").names())
	require.Equal(t, []string{"crawl/v6"}, guarded(t, pool()...).page(t, "/v1/proxies", as("crawl-only")...).names())
}

func TestPagesGoOnBehindTheLastNameWhateverComesAndGoes(t *testing.T) {
	t.Parallel()
	s := newStage()
	for i := range 25 {
		p := running("default", "p"+strconv.Itoa(100+i), "203.0.113.7")
		s.fleet.proxies["default/"+p.Metadata.Name] = p
	}
	var seen []string
	next := ""
	for pages := 0; ; pages++ {
		p := s.page(t, "/v1/proxies?limit=10&continue="+url.QueryEscape(next))
		seen = append(seen, p.names()...)
		delete(s.fleet.proxies, p.names()[9%len(p.Items)]) // the one that the token names
		s.fleet.proxies["default/a"] = running("default", "a", "203.0.113.8")
		if next = p.Continue; next == "" {
			require.Equal(t, 2, pages)
			break
		}
		require.Len(t, p.Items, 10)
	}
	require.Len(t, seen, 25, "none twice, none left out")
	require.IsIncreasing(t, seen)
}

func TestAListThatCannotBeAskedForIsNamed(t *testing.T) {
	t.Parallel()
	s := newStage()
	for query, want := range map[string]refusal{
		"labels=,":            {422, "invalid-field", "labels", ","},
		"phase=Runs":          {422, "invalid-field", "phase", "Runs"},
		"health=yes":          {422, "invalid-field", "health", "yes"},
		"limit=x":             {400, "wrong-type", "limit", "x"},
		"continue=x":          {422, "invalid-field", "continue", "x"},
		"continue=v1.IQ":      {422, "invalid-field", "continue", "v1.IQ"},
		"continue=v1.Li4gLi4": {422, "invalid-field", "continue", "v1.Li4gLi4"},
		"sort=name":           {400, "unknown-field", "sort", "name"},
	} {
		require.Equal(t, want, told(t, s.ask(t, "GET", "/v1/proxies?"+query, "")), query)
	}
}

func TestAWriteForAnotherGenerationIsRefused(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"PUT ", "DELETE ", "POST /hold", "POST /resume", "POST /retry", "POST /replace"} {
		method, suffix, _ := strings.Cut(call, " ")
		path, body := proxyA+suffix, ""
		if method == "PUT" {
			body = unchanged
		}
		s := newStage(pool()...)
		require.Less(t, s.ask(t, method, path, body, "If-Match", `"1"`).Code, 300, call)
		s = newStage(pool()...)
		answer := s.ask(t, method, path, body, "If-Match", `"7"`)
		require.Equal(t, refusal{412, "precondition-failed", "metadata.generation", "1"}, told(t, answer), call)
		require.Empty(t, s.fleet.told, call)
		for _, wrong := range []string{`7`, `W/"7"`, `*`, `"0"`, `"x"`, `"1", "2"`} {
			require.Equal(t, refusal{422, "invalid-field", "If-Match", wrong},
				told(t, s.ask(t, method, path, body, "If-Match", wrong)), call)
		}
		missing := "/v1/namespaces/default/proxies/nobody" + suffix
		require.Equal(t, 412, s.ask(t, method, missing, body, "If-Match", `"1"`).Code, call)
	}
	require.Equal(t, `"1"`, newStage(pool()...).ask(t, "GET", proxyA, "").Header().Get("ETag"))
}

// waited sends a write that waits, and returns what came of it.
func waited(t *testing.T, l *live, during func()) int {
	t.Helper()
	answers := make(chan int, 1)
	go func() { answers <- l.ask(t, "PUT", proxyA+"?wait=20s", unchanged).Code }()
	select {
	case l.clock.of(server.LookEvery) <- birth: // somebody looks, and sees no change
	case code := <-answers:
		return code
	}
	during()
	for {
		select {
		case l.clock.of(server.LookEvery) <- birth:
		case code := <-answers:
			return code
		}
	}
}

func TestAWriteWaitsUntilTheProxyRunsOrIsGone(t *testing.T) {
	t.Parallel()
	pending := func() *live {
		p := running("default", "a", "203.0.113.7")
		p.Status.Phase = v1.PhasePending
		return run(t, newStage(p), server.Limits{})
	}
	l := pending()
	require.Equal(t, 200, waited(t, l, func() {
		l.fleet.set(func(f *fakeFleet) { f.fail = errors.New("a hiccup is looked past") })
		l.clock.of(server.LookEvery) <- birth
		l.fleet.set(func(f *fakeFleet) {
			p := f.proxies["default/a"]
			p.Status.Phase, p.Status.ObservedGeneration = v1.PhaseRunning, p.Metadata.Generation
			f.fail, f.proxies["default/a"] = nil, p
		})
	}))
	l = pending()
	require.Equal(t, 204, waited(t, l, func() { l.fleet.set(func(f *fakeFleet) { f.proxies = nil }) }))
	l = pending()
	require.Equal(t, 200, waited(t, l, func() { l.clock.of(20e9) <- birth }), "the time is over")
}
