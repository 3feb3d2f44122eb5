package server_test

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server/openapi"
)

// refusal is what a bad request is answered. No field means that none is to blame.
type refusal struct {
	status int
	kind   string
	field  string
	value  string
}

type badRequest struct {
	method, target, body string
	headers              []string
	want                 refusal
}

func invalid(field, value string) refusal  { return refusal{422, "invalid-field", field, value} }
func unknown(field, value string) refusal  { return refusal{400, "unknown-field", field, value} }
func mistyped(field, value string) refusal { return refusal{400, "wrong-type", field, value} }
func twice(field, value string) refusal    { return refusal{400, "duplicate-field", field, value} }
func media(field, value string) refusal    { return refusal{415, "unsupported-media-type", field, value} }

func noMethod(value string) refusal { return refusal{405, "method-not-allowed", "method", value} }

// put is a PUT of a whole body, and spec one of a spec that is otherwise good.
func put(body string, want refusal, headers ...string) badRequest {
	return badRequest{"PUT", proxyA, body, headers, want}
}

func spec(more string, want refusal) badRequest {
	return put(`{"spec": {"provider": "gcp", "port": 3128, `+more+`}}`, want)
}

func port(value string, want refusal) badRequest {
	return put(`{"spec": {"provider": "gcp", "port": `+value+`}}`, want)
}

func labels(pair string, want refusal) badRequest {
	return put(`{"metadata": {"labels": {`+pair+`}}, "spec": {"provider": "gcp", "port": 3128}}`, want)
}

// post is a message to a proxy that is there.
func post(verb, body string, want refusal, headers ...string) badRequest {
	return badRequest{"POST", proxyA + "/" + verb, body, headers, want}
}

func remove(query string, want refusal) badRequest {
	return badRequest{"DELETE", proxyA + "?" + query, "", nil, want}
}

func missing(field, value string) refusal { return refusal{400, "missing-parameter", field, value} }

func typed(contentType string) badRequest {
	return put(minimal, media("Content-Type", contentType), "Content-Type", contentType)
}

func named(name string, want refusal) badRequest {
	return badRequest{"PUT", "/v1/namespaces/default/proxies/" + name, minimal, nil, want}
}

var (
	malformed = refusal{400, "malformed-request", "", ""}
	nothing   = refusal{404, "no-such-route", "", ""}
	long      = strings.Repeat("x", 300)
	cut80     = strings.Repeat("x", 80) + "…"
)

func TestEveryBadRequestIsToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	all := map[string]badRequest{}
	for _, table := range []map[string]badRequest{
		badRoutes, badNames, badBodies, badFields, badValues, badLabels, badParameters, badMessages, badDeletes,
		badDiscovery, badLists, badConditions,
	} {
		maps.Copy(all, table)
	}
	for name, bad := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(pool()...)
			s.server.Refresh(t.Context())
			answer := s.ask(t, bad.method, bad.target, bad.body, bad.headers...)
			require.Equal(t, bad.want, told(t, answer))
			require.Empty(t, s.fleet.ids, "the fleet was asked for it")
			require.Empty(t, s.fleet.reasons, "the fleet was asked for it")
			require.Empty(t, s.fleet.told, "the fleet was asked for it")
		})
	}
}

// told is the refusal in an answer, which must be a whole problem document.
func told(t *testing.T, answer *httptest.ResponseRecorder) refusal {
	t.Helper()
	require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"), answer.Body)
	var document openapi.Problem
	decoder := json.NewDecoder(answer.Body)
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&document))
	require.Equal(t, answer.Code, document.Status)
	require.NotEmpty(t, document.Title)
	require.NotEmpty(t, document.Detail)
	kind, known := strings.CutPrefix(document.Type, "urn:egressfleet:problem:")
	require.True(t, known, document.Type)
	got := refusal{answer.Code, kind, document.Field, ""}
	if document.Value != nil {
		got.value = *document.Value
		require.Contains(t, document.Detail, document.Field)
	}
	require.Equal(t, document.Field != "", document.Value != nil)
	return got
}
