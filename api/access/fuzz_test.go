package access_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
)

// A file is read or refused, and a token that it does not list is nobody's. Its error
// holds no hash.
func FuzzAFileOfTokensIsReadOrRefused(f *testing.F) {
	for _, more := range []string{
		"scopes: [read]", "scopes: [write, discovery], namespaces: [a, b], labels: 'team in (x, y), !old'",
		"scopes: [admin], requestsPerSecond: 0.5", "scopes: []", "scopes: [read], labels: \"\\0a=b\"",
		"scopes: [read], requestsPerSecond: .nan", "scopes: &a [read], namespaces: *a", "<<: {scopes: [read]}",
	} {
		f.Add(one(more))
	}
	f.Add(sum(secret) + ": a\n")
	f.Add("tokens: []\n---\n")
	f.Add("tokens: {}\n")
	f.Add("")
	path := filepath.Join(f.TempDir(), "tokens.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		file, err := access.Open(path, nil, nil)
		if err != nil {
			require.ErrorContains(t, err, "api.tokensFile: ")
			require.NotContains(t, err.Error(), sum(secret))
			return
		}
		require.Nil(t, file.Find(""))
		if grant := file.Find(secret); grant != nil {
			require.Regexp(t, `^[a-z0-9-]{1,63}$`, grant.Name)
			require.Equal(t, grant.Labels() != "", grant.Labelled())
			require.Zero(t, grant.Take(time.Now()), "the first request is never one too many")
		}
	})
}
