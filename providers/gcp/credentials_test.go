package gcp_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
)

func TestABadCredentialDoesNotTakeThePlaceOfAGoodOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.create(request())
	l.mount("no key at all")
	var lines strings.Builder
	ctx := providers.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
	_, err := l.Get(ctx, id)
	require.NoError(t, err, "the one before goes on")
	require.Contains(t, lines.String(), "credentialsFile")
	_, err = gcp.New(t.Context(), providerName, installation, l.cfg)
	require.ErrorContains(t, err, "credentialsFile", "so that the registry keeps the provider before")
	l.gate.takes("second")
	l.mount(keyFile(t, "second"))
	_, err = l.Get(t.Context(), id)
	require.NoError(t, err, "at the next call")
	require.Equal(t, []string{l.cfg.CredentialsFile}, l.Provider.(providers.Credentialed).CredentialFiles())
}

func TestNoCredentialIsInAnError(t *testing.T) {
	t.Parallel()
	whole := keyFile(t, "first")
	for what, content := range map[string]string{
		"cut off":       whole[:len(whole)/2],
		"another type":  strings.Replace(whole, "service_account", "s3ntinel", 1),
		"no key":        strings.Replace(whole, "BEGIN PRIVATE KEY", "BEGIN S3NTINEL", 1),
		"no JSON":       "s3ntinel-0123456789",
		"a wrong field": strings.Replace(whole, `"client_id":"1"`, `"client_id":["s3ntinel"]`, 1),
		"too long":      whole + strings.Repeat(" ", 1<<20),
	} {
		l := newLab(t)
		l.mount(content)
		_, err := gcp.New(t.Context(), providerName, installation, l.cfg)
		require.Error(t, err, what)
		require.NotContains(t, strings.ToLower(err.Error()), "s3ntinel", what)
		require.NotContains(t, err.Error(), privateKey()[60:90], what)
		_, err = l.Get(t.Context(), "zones/"+zoneA+"/instances/proxy-a")
		require.Equal(t, providers.ErrPermanent, providers.ClassOf(err), what)
		require.NotContains(t, strings.ToLower(err.Error()), "s3ntinel", what)
	}
}

// A token server that refuses may be told why tomorrow; what it was asked with stays out.
func TestARefusedTokenIsTransientAndSaysNoMore(t *testing.T) {
	t.Parallel()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error": "invalid_grant", "error_description": "s3ntinel"}`))
	}))
	defer tokens.Close()
	l := newLab(t)
	subject := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(subject, []byte("s3ntinel-subject"), 0o600))
	config, err := json.Marshal(map[string]any{
		"type":               "external_account",
		"audience":           "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": tokens.URL,
		"credential_source": map[string]string{"file": subject},
	})
	require.NoError(t, err)
	l.mount(string(config))
	_, err = l.Get(t.Context(), "zones/"+zoneA+"/instances/proxy-a")
	require.Equal(t, providers.ErrTransient, providers.ClassOf(err), "%v", err)
	require.NotContains(t, err.Error(), "s3ntinel")
	require.Equal(t, providers.ReasonUnauthorized, l.check(t.Context())[0].Reason)
}
