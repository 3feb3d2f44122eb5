package access_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
)

const secret = "t0ken-of-a-crawler"

func sum(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

// desk is a file of tokens, whose time stands still until it is moved.
type desk struct {
	t    *testing.T
	path string
	log  bytes.Buffer
	now  time.Time
	*access.File
}

func newDesk(t *testing.T, text string) *desk {
	t.Helper()
	d := &desk{t: t, path: filepath.Join(t.TempDir(), "tokens.yaml"), now: time.Unix(1e9, 0)}
	d.write(text)
	file, err := access.Open(d.path, slog.New(slog.NewTextHandler(&d.log, nil)), func() time.Time { return d.now })
	require.NoError(t, err)
	d.File = file
	return d
}

func (d *desk) write(text string) { require.NoError(d.t, os.WriteFile(d.path, []byte(text), 0o600)) }

func one(more string) string {
	return "tokens:\n- {name: crawler, sha256: " + sum(secret) + ", " + more + "}\n"
}

func TestAScopeHoldsThoseBeforeIt(t *testing.T) {
	t.Parallel()
	for given, most := range map[string]int{
		"discovery": 0, "read": 1, "write": 2, "admin": 3, "write, discovery": 2, "discovery, discovery": 0,
	} {
		grant := newDesk(t, one("scopes: ["+given+"]")).Find(secret)
		require.NotNil(t, grant)
		for i, scope := range access.Scopes() {
			require.Equal(t, i <= most, grant.May(scope), "%s may %s", given, scope)
			require.Equal(t, i == most, grant.Only(scope), "%s is %s", given, scope)
		}
	}
}

func TestWhoIsNotInTheFileIsNobody(t *testing.T) {
	t.Parallel()
	d := newDesk(t, one("scopes: [read]"))
	for _, token := range []string{"", "t0ken", secret + " ", strings.ToUpper(secret), sum(secret)} {
		require.Nil(t, d.Find(token), token)
	}
	require.False(t, access.Of(t.Context()).May(access.ScopeDiscovery), "a request that nobody let in")
	require.False(t, access.Of(t.Context()).Sees("default", nil))
	everything := access.Of(access.With(t.Context(), access.Everything()))
	require.True(t, everything.May(access.ScopeAdmin) && everything.Sees("any", nil) && !everything.Restricted())
}

func TestATokenIsForItsNamespacesAndLabels(t *testing.T) {
	t.Parallel()
	grant := newDesk(t, one("scopes: [read], namespaces: [a, b], labels: 'team in (x, y), !old'")).Find(secret)
	require.True(t, grant.Restricted() && grant.Labelled())
	for _, c := range []struct {
		namespace string
		labels    map[string]string
		sees      bool
	}{
		{"a", map[string]string{"team": "x"}, true},
		{"b", map[string]string{"team": "y", "tier": "gold"}, true},
		{"c", map[string]string{"team": "x"}, false},
		{"a", map[string]string{"team": "z"}, false},
		{"a", map[string]string{"team": "x", "old": ""}, false},
		{"a", nil, false},
	} {
		require.Equal(t, c.sees, grant.Sees(c.namespace, c.labels), c)
	}
	require.True(t, newDesk(t, one("scopes: [read], namespaces: [a]")).Find(secret).Restricted())
	require.False(t, newDesk(t, one("scopes: [read]")).Find(secret).Restricted())
}

func TestAnAllowanceIsUsedUpAndComesBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t, one("scopes: [read], requestsPerSecond: 2"))
	grant := d.Find(secret)
	for range 4 {
		require.Zero(t, grant.Take(d.now), "twice as many at once")
	}
	require.Equal(t, 500*time.Millisecond, grant.Take(d.now))
	require.Equal(t, 500*time.Millisecond, grant.Take(d.now), "who was refused has used nothing up")
	require.Zero(t, grant.Take(d.now.Add(500*time.Millisecond)))
}

func TestAChangedFileCountsAfterASecond(t *testing.T) {
	t.Parallel()
	d := newDesk(t, one("scopes: [read]"))
	d.write("tokens:\n- {name: other, sha256: " + sum("other") + ", scopes: [write]}\n")
	d.now = d.now.Add(999 * time.Millisecond)
	require.NotNil(t, d.Find(secret))
	d.now = d.now.Add(time.Millisecond)
	require.Nil(t, d.Find(secret))
	require.True(t, d.Find("other").May(access.ScopeWrite))
}

func TestAFileThatTurnsBadKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t, one("scopes: [read]"))
	d.write(one("scopes: [reed]"))
	d.now = d.now.Add(time.Second)
	require.NotNil(t, d.Find(secret))
	require.Contains(t, d.log.String(), d.path)
	require.Contains(t, d.log.String(), "reed")
	require.NoError(t, os.Remove(d.path))
	before := strings.Count(d.log.String(), "\n")
	for range 3 {
		d.now = d.now.Add(time.Second)
		require.NotNil(t, d.Find(secret))
	}
	require.Equal(t, before+1, strings.Count(d.log.String(), "\n"), "it is told once")
	d.write(one("scopes: [write]"))
	d.now = d.now.Add(time.Second)
	require.True(t, d.Find(secret).May(access.ScopeWrite))
	require.NotContains(t, d.log.String(), sum(secret))
}

func TestABadFileNamesTheKeyAndTheValue(t *testing.T) {
	t.Parallel()
	hash := "sha256: " + sum(secret)
	for _, bad := range []struct{ text, want string }{
		{"", "tokens: is empty"},
		{"tokens: []\n", "tokens: is empty"},
		{"tokens: {}\n", "cannot unmarshal"},
		{"token: []\n", "field token not found"},
		{one("scopes: []"), "tokens[0].scopes: is empty; the scopes are [discovery read write admin]"},
		{one("role: admin"), "field role not found"},
		{one("scopes: [a]"), `tokens[0].scopes[0]: "a" is not one of [discovery read write admin]`},
		{one("scopes: [read], namespaces: [A]"), `tokens[0].namespaces[0]: "A" is not a DNS label`},
		{one("scopes: [read], labels: 'a in b'"), `tokens[0].labels: "a in b" is not a label selector`},
		{one(`scopes: [read], labels: "\0team=a"`), `tokens[0].labels: "\x00team=a" is not a label selector`},
		{one("scopes: [read], requestsPerSecond: 0"), "tokens[0].requestsPerSecond: 0 is not above 0"},
		{one("scopes: [read], requestsPerSecond: -1"), "tokens[0].requestsPerSecond: -1 is not above 0"},
		{"tokens:\n- {scopes: [read], " + hash + "}\n", `tokens[0].name: "" is not a DNS label`},
		{"tokens:\n- {name: a, scopes: [read]}\n", "tokens[0].sha256: is not a SHA-256 of 64 hexadecimal digits"},
		{"tokens:\n- {name: a, scopes: [read], sha256: " + secret + "}\n", "tokens[0].sha256: is not a SHA-256"},
		{
			one("scopes: [read]") + "- {name: crawler, scopes: [read], sha256: " + sum("b") + "}\n",
			`tokens[1].name: "crawler" is that of tokens[0], too`,
		},
		{
			one("scopes: [read]") + "- {name: b, scopes: [read], " + hash + "}\n",
			"tokens[1].sha256: is that of tokens[0], too",
		},
		{one("scopes: [read]") + "---\ntokens: []\n", "more than one YAML document"},
	} {
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		require.NoError(t, os.WriteFile(path, []byte(bad.text), 0o600))
		_, err := access.Open(path, nil, nil)
		require.ErrorContains(t, err, "api.tokensFile: "+path+": ", bad.text)
		require.ErrorContains(t, err, bad.want, bad.text)
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, err.Error(), sum(secret))
	}
	_, err := access.Open(filepath.Join(t.TempDir(), "nowhere"), nil, nil)
	require.ErrorContains(t, err, "api.tokensFile: open ")
}
