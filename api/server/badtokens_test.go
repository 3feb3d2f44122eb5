package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	nobody    = refusal{401, "unauthenticated", "", ""}
	notScope  = refusal{403, "forbidden", "", ""}
	encoded   = refusal{403, "forbidden", "metadata.namespace", "%64efault"}
	elsewhere = refusal{403, "forbidden", "metadata.namespace", "default"}
)

// bearer is a GET of a Proxy with such an Authorization header.
func bearer(header string) badRequest {
	return badRequest{"GET", proxyA, "", []string{"Authorization", header}, nobody}
}

// shown is a GET with a token in the query.
func shown(target, name string, want refusal) badRequest {
	return badRequest{"GET", target + "token=" + secretOf(name), "", nil, want}
}

func withSession(value string, headers ...string) []string {
	return append([]string{"Cookie", "egressfleet_session=" + value}, headers...)
}

// badTokens are about who asks, before it counts what for.
var badTokens = map[string]badRequest{
	"no token":                       {"GET", proxyA, "", nil, nobody},
	"no token for nothing":           {"GET", "/nowhere", "", nil, nobody},
	"no token for a bad name":        {"GET", "/v1/namespaces/-/proxies/A", "", nil, nobody},
	"no token for a wrong method":    {"BREW", proxyA, "", nil, nobody},
	"no token for a bad body":        {"PUT", proxyA, "{", nil, nobody},
	"no token for the contract":      {"GET", "/openapi.yaml", "", nil, nobody},
	"no token behind a health check": {"GET", "/healthz/../v1/providers", "", nil, nobody},
	"a token without a scheme":       bearer(secretOf("boss")),
	"a token of another scheme":      bearer("Basic " + secretOf("boss")),
	"a token that is empty":          bearer("Bearer "),
	"a scheme alone":                 bearer("Bearer"),
	"a token in quotes":              bearer(`Bearer "` + secretOf("boss") + `"`),
	"a token with more behind it":    bearer("Bearer " + secretOf("boss") + ", Bearer x"),
	"a token in capitals":            bearer("Bearer " + strings.ToUpper(secretOf("boss"))),
	"half a token":                   bearer("Bearer " + secretOf("boss")[:6]),
	"a token with a zero byte":       bearer("Bearer " + secretOf("boss") + "\x00"),
	"a token that is no UTF-8":       bearer("Bearer \xff\xfe"),
	"a token that is long":           bearer("Bearer " + strings.Repeat("x", 8000)),
	"a token that is a hash":         bearer("Bearer " + strings.Repeat("0", 64)),
	"two tokens": {
		"GET", proxyA, "", append(as("boss"), as("boss")...), nobody,
	},
	"a session that nobody has":        {"GET", proxyA, "", withSession("nonsense"), nobody},
	"a session that is a token":        {"GET", proxyA, "", withSession(secretOf("boss")), nobody},
	"a session with a header's scheme": {"GET", proxyA, "", withSession("Bearer " + secretOf("boss")), nobody},
	"a session that was changed": {
		"GET", proxyA, "", withSession(strings.Replace(sessionOf("boss"), "boss", "editor", 1)), nobody,
	},
	"a session that is a bearer": bearer("Bearer " + sessionOf("boss")),
	"a session that is empty":    {"GET", proxyA, "", withSession(""), nobody},
	"a bad token with a good session": {
		"GET", proxyA, "", append(withSession(sessionOf("boss")), "Authorization", "x"), nobody,
	},
	"a session of another site's page": {
		"DELETE", proxyA, "", withSession(sessionOf("boss"), "Sec-Fetch-Site", "cross-site"), notScope,
	},
	"a session of another origin": {"DELETE", proxyA, "", withSession(sessionOf("boss"), "Origin", "null"), notScope},

	"a query token elsewhere":        shown("/v1/providers?", "crawler", nobody),
	"a query token near discovery":   shown("/v1/discovery2?", "crawler", nobody),
	"a query token nobody has":       shown("/v1/discovery?", "nobody", nobody),
	"a query token that may read":    shown("/v1/discovery?", "viewer", notScope),
	"a query token that may all":     shown("/v1/discovery/pick?", "boss", notScope),
	"a query token in capitals":      {"GET", "/v1/discovery?Token=" + secretOf("crawler"), "", nil, nobody},
	"a query token that is empty":    {"GET", "/v1/discovery?token=", "", nil, nobody},
	"a query token and a second one": shown("/v1/discovery?token="+secretOf("crawler")+"&", "crawler", twiceHidden),
	"a query token that is sent":     {"POST", "/v1/discovery", "token=" + secretOf("crawler"), nil, nobody},

	"a token in capitals, beside a good one": {
		"GET", "/v1/discovery?TOKEN=" + secretOf("crawler"), "", as("crawler"), unknown("TOKEN", "(hidden)"),
	},
	"a crawler that reads":          {"GET", proxyA, "", as("crawler"), notScope},
	"a crawler that lists":          {"GET", "/v1/proxies", "", as("crawler"), notScope},
	"a viewer that writes":          {"PUT", proxyA, unchanged, as("viewer"), notScope},
	"a viewer that writes nonsense": {"PUT", proxyA, "{", as("viewer"), notScope},
	"an editor that leaves something": {
		"DELETE", proxyA + "?skipCleanup=true&reason=x", "", as("editor"), refusal{403, "forbidden", "skipCleanup", "true"},
	},
	"another namespace":            {"GET", proxyA, "", as("crawl-only"), elsewhere},
	"another namespace, to delete": {"DELETE", proxyA, "", as("crawl-only"), elsewhere},
	"another namespace, to list":   {"GET", "/v1/namespaces/default/proxies", "", as("crawl-only"), elsewhere},
	"another namespace, encoded":   {"GET", "/v1/namespaces/%64efault/proxies/a", "", as("crawl-only"), encoded},
	"other labels":                 {"GET", proxyA, "", as("gold-only"), refusal{404, "not-found", "metadata.name", "a"}},
	"other labels, to hold": {
		"POST", proxyA + "/hold", "{}", as("gold-only"), refusal{404, "not-found", "metadata.name", "a"},
	},
	"other labels, to make": {
		"PUT", "/v1/namespaces/default/proxies/new", minimal, as("gold-only"),
		refusal{403, "forbidden", "metadata.labels", "tier=gold"},
	},
}

// The value of a query token is in no answer.
var twiceHidden = twice("token", "(hidden)")

func TestEveryBadTokenIsToldWhatIsWrongAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, bad := range badTokens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := guarded(t, pool()...)
			answer := s.ask(t, bad.method, bad.target, bad.body, bad.headers...)
			require.NotContains(t, answer.Body.String(), "s3cret")
			require.NotContains(t, s.log.String(), "s3cret")
			require.Equal(t, bad.want, told(t, answer))
			require.Empty(t, append(append(s.fleet.ids, s.fleet.reasons...), s.fleet.told...), "the fleet was asked for it")
		})
	}
}
