package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

func (s *stage) discovery(t *testing.T) v1.Discovery {
	t.Helper()
	answer := s.ask(t, "GET", "/v1/discovery", "")
	require.Equal(t, 200, answer.Code, answer.Body)
	var list v1.Discovery
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	return list
}

func TestDiscoveryIsStaleFromTheFirstFailureToTheNextSuccess(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	require.False(t, s.discovery(t).Stale)

	s.clock.move(5 * time.Second)
	s.fleet.fail = errors.New("away")
	s.server.Refresh(t.Context())
	old := s.discovery(t)
	require.True(t, old.Stale)
	require.Len(t, old.Proxies, 3)
	require.Equal(t, birth, old.GeneratedAt)

	s.clock.move(5 * time.Second)
	s.fleet.fail = nil
	s.server.Refresh(t.Context())
	fresh := s.discovery(t)
	require.False(t, fresh.Stale)
	require.Equal(t, birth.Add(10*time.Second), fresh.GeneratedAt)
}

func TestAListOfTheSameRevisionIsTheSameAtAnotherTime(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.fleet.revision = 1
	s.server.Refresh(t.Context())
	require.Len(t, s.discovery(t).Proxies, 3)
	s.fleet.proxies = nil
	s.clock.move(5 * time.Second)
	s.fleet.fail = errors.New("away")
	s.server.Refresh(t.Context())
	s.fleet.fail = nil
	s.server.Refresh(t.Context())
	same := s.discovery(t)
	require.Len(t, same.Proxies, 3, "what is not another one is not looked at")
	require.False(t, same.Stale)
	require.Equal(t, birth.Add(5*time.Second), same.GeneratedAt)
	s.fleet.revision = 2
	s.server.Refresh(t.Context())
	require.Empty(t, s.discovery(t).Proxies)
}

func TestDiscoveryIsStaleWhenRefreshesStoppedWithoutFailing(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	s.clock.move(10 * time.Second)
	require.False(t, s.discovery(t).Stale)
	s.clock.move(time.Nanosecond)
	require.True(t, s.discovery(t).Stale)
}

func TestDiscoveryIsUnknownAfterAMinute(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/v1/discovery", "/v1/discovery?format=txt"} {
		s := newStage(pool()...)
		require.Equal(t, 503, s.ask(t, "GET", target, "").Code)
		s.server.Refresh(t.Context())
		s.clock.move(time.Minute)
		s.fleet.fail = fleet.ErrUnavailable
		s.server.Refresh(t.Context())
		answer := s.ask(t, "GET", target, "")
		require.Equal(t, 200, answer.Code)
		require.Equal(t, "60", answer.Header().Get("Age"))
		s.clock.move(time.Nanosecond)
		answer = s.ask(t, "GET", target, "", "If-None-Match", "*")
		require.Equal(t, "5", answer.Header().Get("Retry-After"))
		require.Equal(t, refusal{503, "discovery-unknown", "", ""}, told(t, answer))
		s.fleet.fail = nil
		s.server.Refresh(t.Context())
		require.Equal(t, 200, s.ask(t, "GET", target, "").Code)
	}
}

func TestAClockThatGoesBackMakesNoNegativeAge(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	s.clock.move(-time.Hour)
	require.Equal(t, "0", s.ask(t, "GET", "/v1/discovery", "").Header().Get("Age"))
}

func TestDiscoveryNeverAsksTheFleet(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	for range 10 {
		s.discovery(t)
	}
	require.Equal(t, []string{""}, s.fleet.lists)
}

func TestAListThatIsStillTheSameIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/v1/discovery", "/v1/discovery?format=txt"} {
		s := newStage(pool()...)
		s.server.Refresh(t.Context())
		etag := s.ask(t, "GET", target, "").Header().Get("ETag")
		require.Regexp(t, `^W/"[0-9a-f]{32}"$`, etag)

		s.clock.move(5 * time.Second) // a new generatedAt is no new list
		s.server.Refresh(t.Context())
		for _, known := range []string{etag, strings.TrimPrefix(etag, "W/"), `"x", ` + etag, "*", `W/"x",` + etag + `,"y"`} {
			answer := s.ask(t, "GET", target, "", "If-None-Match", known)
			require.Equal(t, 304, answer.Code, known)
			require.Empty(t, answer.Body.Bytes())
			require.Equal(t, etag, answer.Header().Get("ETag"))
			require.Equal(t, "0", answer.Header().Get("Age"))
		}
		require.Equal(t, 304, s.ask(t, "GET", target, "", "If-None-Match", `"x"`, "If-None-Match", etag).Code)
		require.Equal(t, 200, s.ask(t, "GET", target, "", "If-None-Match", `"x"`).Code)
		require.Equal(t, 200, s.ask(t, "GET", target, "", "If-None-Match", "").Code)

		delete(s.fleet.proxies, "default/a")
		s.server.Refresh(t.Context())
		answer := s.ask(t, "GET", target, "", "If-None-Match", etag)
		require.Equal(t, 200, answer.Code)
		require.NotEqual(t, etag, answer.Header().Get("ETag"))
	}
}

func TestAClientThatKnowsTheListIsToldAtOnceThatItIsStale(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	etag := s.ask(t, "GET", "/v1/discovery", "").Header().Get("ETag")
	s.fleet.fail = fleet.ErrUnavailable
	s.server.Refresh(t.Context())
	answer := s.ask(t, "GET", "/v1/discovery", "", "If-None-Match", etag)
	require.Equal(t, 200, answer.Code)
	require.Contains(t, answer.Body.String(), `"stale":true`)
}

func TestARefreshThatHangsIsAFailure(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	s.fleet.hang = true
	ended, end := context.WithCancel(t.Context())
	end() // in place of the four seconds of a refresh
	s.server.Refresh(ended)
	require.True(t, s.discovery(t).Stale)
	require.Contains(t, s.log.String(), "discovery was not refreshed")
}

func TestReadinessStaysOnceTheListWasLoaded(t *testing.T) {
	t.Parallel()
	s := newStage()
	require.Equal(t, 503, s.ask(t, "GET", "/readyz", "").Code)
	s.fleet.fail = fleet.ErrUnavailable
	s.server.Refresh(t.Context())
	require.Equal(t, 503, s.ask(t, "GET", "/readyz", "").Code)
	s.fleet.fail = nil
	require.Equal(t, 503, s.ask(t, "GET", "/readyz", "").Code, "a failed refresh is no list")
	s.server.Refresh(t.Context())
	require.Equal(t, 200, s.ask(t, "GET", "/readyz?verbose", "").Code)
	s.clock.move(time.Hour)
	require.Equal(t, 200, s.ask(t, "GET", "/readyz", "").Code)
}
