package main_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/testsuite/output"
	worker "github.com/egressfleet/egressfleet/worker"
)

const key = "qM3Cq1o5N0mZq1W8nH2nYyF0c8s0o6mJ0sY3m5bq7pQ="

// sealed are settings with one key and one token.
func sealed(t *testing.T, temporal int) config.Config {
	t.Helper()
	cfg := settings(temporal)
	cfg.Codec.Keys = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Codec.Keys, "2026-11"), []byte(key), 0o600))
	cfg.Codec.TokensFile = filepath.Join(t.TempDir(), "tokens")
	sum := sha256.Sum256([]byte("a-token"))
	require.NoError(t, os.WriteFile(cfg.Codec.TokensFile, []byte(hex.EncodeToString(sum[:])), 0o600))
	return cfg
}

func TestWrongKeysAreToldBeforeTemporalIsWaitedFor(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*config.Config){
		"key file ": func(c *config.Config) {
			require.NoError(t, os.WriteFile(filepath.Join(c.Codec.Keys, "2026-12"), []byte("short"), 0o600))
		},
		`codec.current: "x" is not a key`: func(c *config.Config) { c.Codec.Current = "x" },
		"codec.tokensFile: ":              func(c *config.Config) { c.Codec.TokensFile += "-nowhere" },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			cfg := sealed(t, free(t))
			spoil(&cfg)
			err := worker.Run(t.Context(), cfg, worker.Options{
				Log: new(output.Log), Environment: quiet(), DialPatience: time.Hour,
			})
			require.ErrorContains(t, err, want)
			require.Equal(t, 2, worker.ExitCode(new(output.Log), err))
		})
	}
}

func TestTheAPIServesTheCodecToWhoHasAToken(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	up, done := make(chan worker.Addresses, 1), make(chan error, 1)
	var out output.Log
	cfg := sealed(t, serve(t, &temporal{}))
	go func() {
		done <- worker.Run(ctx, cfg, worker.Options{
			Log: &out, Environment: quiet(), Up: func(a worker.Addresses) { up <- a },
		})
	}()
	at := "http://" + (<-up).API
	post := func(path, token, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		return answer(t, req)
	}
	status, encrypted := post("/codec/encode", "a-token", `{"payloads": [{"data": "c2VudGluZWw="}]}`)
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, encrypted, "c2VudGluZWw=")
	status, _ = post("/codec/decode", "another", encrypted)
	require.Equal(t, http.StatusUnauthorized, status)
	status, plain := post("/codec/decode", "a-token", encrypted)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, plain, "c2VudGluZWw=")
	require.Contains(t, out.String(), "key=2026-11")
	require.NotContains(t, out.String(), "a-token")
	require.NotContains(t, out.String(), key)
	cancel()
	require.NoError(t, <-done)
}
