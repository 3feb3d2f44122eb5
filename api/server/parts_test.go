package server_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func (s *stage) part(t *testing.T, query string, headers ...string) (names []string) {
	t.Helper()
	answer := s.ask(t, "GET", "/v1/discovery"+query, "", headers...)
	require.Equal(t, 200, answer.Code, answer.Body)
	var list v1.Discovery
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	for _, e := range list.Proxies {
		names = append(names, e.Name)
	}
	return names
}

func TestTheSameQuestionOfAnotherTokenHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	s := guarded(t, pool()...)
	for range 2 {
		require.Equal(t, []string{"v6", "a", "b"}, s.part(t, "?healthy=true", as("boss")...))
		require.Equal(t, []string{"v6"}, s.part(t, "?healthy=true", as("crawl-only")...))
		require.Empty(t, s.part(t, "?healthy=true", as("gold-only")...))
		require.Equal(t, []string{"v6", "a", "b"}, s.part(t, "?healthy=true", as("crawler")...))
	}
}

func TestTheSameQuestionOfAnotherListHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	for range 2 {
		require.Equal(t, []string{"a", "b"}, s.part(t, "?namespace=default"))
		require.Equal(t, []string{"a"}, s.part(t, "?namespace=default&limit=1"))
	}
	delete(s.fleet.proxies, "default/a")
	s.server.Refresh(t.Context())
	require.Equal(t, []string{"b"}, s.part(t, "?namespace=default"))
	require.Equal(t, []string{"b"}, s.part(t, "?namespace=default&limit=1"))
}

func TestABanIsInTheNextAnswerForItsSite(t *testing.T) {
	t.Parallel()
	s := newStage(pool()...)
	s.server.Refresh(t.Context())
	require.Equal(t, []string{"v6", "a", "b"}, s.part(t, "?for=shop.example"))
	answer := s.ask(t, "POST", "/v1/discovery/report",
		`{"proxy": "default/a", "domain": "shop.example", "kind": "banned"}`)
	require.Equal(t, 200, answer.Code, answer.Body)
	require.Equal(t, []string{"v6", "b"}, s.part(t, "?for=shop.example"))
}
