package main

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/server"
	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/internal/telemetry"
	"github.com/egressfleet/egressfleet/testsuite/certificates"
)

func pair(t *testing.T) config.TLS {
	dir := t.TempDir()
	return config.TLS{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
}

func TestTheAPIIsServedByTLSToThoseWithAToken(t *testing.T) {
	t.Parallel()
	files := pair(t)
	roots := certificates.Write(t, files.Certificate, files.Key)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	// The SHA-256 of "token".
	require.NoError(t, os.WriteFile(tokens, []byte("tokens:\n- {name: a, scopes: [read], sha256: "+
		"3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0}\n"), 0o600))
	p := &process{
		log: slog.New(slog.DiscardHandler), cfg: config.Config{API: config.API{
			Listen: config.Listen{Host: "127.0.0.1"}, TokensFile: tokens, TLS: files,
		}},
		failed: make(chan error, 1), registry: telemetry.NewRegistry(),
	}
	require.NoError(t, p.listenAPI(t.Context()))
	require.NoError(t, p.serveAPI(t.Context()))
	defer func() { require.NoError(t, p.stop()) }()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	ask := func(path, token string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.addresses.API+path, nil)
		require.NoError(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer
	}
	require.Equal(t, 2, ask("/healthz", "").ProtoMajor)
	require.Equal(t, http.StatusOK, ask("/healthz", "").StatusCode)
	require.Equal(t, http.StatusUnauthorized, ask("/v1/providers", "").StatusCode)
	require.Equal(t, http.StatusNotFound, ask("/v1/providers", "token").StatusCode, "let in; there is no providers file")
}

func TestAPIFilesThatAreNotThereAreRefused(t *testing.T) {
	t.Parallel()
	for _, api := range []config.API{
		{TokensFile: "nowhere"}, {TLS: config.TLS{Certificate: "nowhere", Key: "nowhere"}},
	} {
		p := &process{log: slog.New(slog.DiscardHandler), cfg: config.Config{API: api}}
		require.Error(t, p.guard(new(server.Options)))
	}
}
