package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// A body is taken, and can then be sent back as it is shown, or it is refused with a
// problem document, and nothing was asked for. No body makes the server fail.
func FuzzABodyIsTakenOrRefused(f *testing.F) {
	f.Add(minimal)
	for _, table := range []map[string]badRequest{badBodies, badFields, badValues, badLabels} {
		for _, bad := range table {
			if bad.method == http.MethodPut && len(bad.body) < 1<<10 {
				f.Add(bad.body)
			}
		}
	}
	f.Add(`{"metadata": {"labels": {"a.b/c": ""}}, "spec": {"provider": "a", "port": 1, "placement": {"zone": "\u00e9"},
		"healthCheck": {"replaceAfter": "1h", "proxyAuthRef": {"name": "a", "key": "b"}}, "deadlines": {"delete": "1.5h"},
		"cloudInit": {"inlineBase64": "YQ=="}}}`)
	const target = "/v1/namespaces/default/proxies/new"
	f.Fuzz(func(t *testing.T, body string) {
		s := newStage()
		answer := s.ask(t, http.MethodPut, target, body, "Content-Type", "application/json")
		if answer.Code != http.StatusCreated {
			require.Less(t, told(t, answer).status, http.StatusInternalServerError)
			require.Empty(t, s.fleet.ids)
			return
		}
		var shown v1.Proxy
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &shown))
		require.NoError(t, shown.Metadata.Validate())
		again := s.ask(t, http.MethodPut, target, answer.Body.String())
		require.Equal(t, http.StatusOK, again.Code, again.Body)
	})
}

// What is asked of a list, or of discovery, is understood or refused, naming what is to
// blame.
func FuzzAFilterIsReadOrRefused(f *testing.F) {
	for _, table := range []map[string]badRequest{badLists, badDiscovery} {
		for _, bad := range table {
			u, err := url.ParseRequestURI(bad.target)
			require.NoError(f, err)
			f.Add(u.Query().Get("labels"), u.Query().Get("continue"), u.Query().Get("wait"))
		}
	}
	f.Add("team in (a, b),!old,tier!=gold", "v1.ZGVmYXVsdCBh", "30s")
	f.Add("a>1,b<2,c notin ()", "v1.ZGVmYXVsdCBhAA", "1m0.5s")
	s := newStage(pool()...)
	s.server.Refresh(f.Context())
	f.Fuzz(func(t *testing.T, labels, continued, wait string) {
		for _, target := range []string{
			"/v1/proxies?" + url.Values{"labels": {labels}, "continue": {continued}}.Encode(),
			"/v1/discovery?" + url.Values{"labels": {labels}, "wait": {wait}}.Encode(),
		} {
			if answer := s.ask(t, http.MethodGet, target, ""); answer.Code != http.StatusOK {
				refused := told(t, answer)
				require.Equal(t, "invalid-field", refused.kind)
				require.Contains(t, []string{"labels", "continue", "wait"}, refused.field)
			}
		}
	})
}
