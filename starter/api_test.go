package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/internal/config"
)

const (
	apiToken   = "t0ken-of-a-person"
	crawlToken = "t0ken-of-a-crawler"
)

// unchecked is a fleet whose providers were never checked.
type unchecked struct{ server.Fleet }

func (unchecked) LastChecks(context.Context) (time.Time, map[string]v1.ProviderCheck, error) {
	return noon, nil, nil
}

// file writes one into a folder of the test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func sumOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// guardedAPI is the API itself, which asks for tokens, and the folder's file of one.
func guardedAPI(t *testing.T) (handler http.Handler) {
	t.Helper()
	keys, err := access.Open(file(t, "tokens.yaml", fmt.Sprintf(
		"tokens:\n- {name: person, sha256: %s, scopes: [read]}\n- {name: crawler, sha256: %s, scopes: [discovery]}\n",
		sumOf(apiToken), sumOf(crawlToken))), nil, nil)
	require.NoError(t, err)
	return server.New(unchecked{}, server.Options{Keys: keys, Providers: func() (v1.ProviderList, bool) {
		return providerList(v1.ProviderConfiguration{State: v1.ConfigurationLoaded},
			v1.Provider{Name: "here", Type: "local", LoadedAt: noon.Add(-3 * time.Hour)}), true
	}}).Handler()
}

func TestTheAPIIsShownAToken(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(guardedAPI(t))
	t.Cleanup(api.Close)
	at := strings.TrimPrefix(api.URL, "http://")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a good one": {[]string{"--api-token-file", file(t, "token", apiToken+"\n")}, exitOK, "here  local  3h"},
		"a URL":      {[]string{"--api", api.URL, "--api-token-file", file(t, "token", apiToken)}, exitOK, "here  local  3h"},
		"none": {nil, exitFailure, "answers 401 Unauthorized: a token is required: send it as Authorization: Bearer TOKEN; " +
			"set EGRESSFLEET_API_TOKEN or --api-token-file to a token that may read"},
		"one that is not known": {
			[]string{"--api-token-file", file(t, "token", "another")}, exitFailure, "answers 401 Unauthorized",
		},
		"one for something else": {
			[]string{"--api-token-file", file(t, "token", crawlToken)},
			exitFailure,
			"answers 403 Forbidden: the token crawler has not the scope read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, code := run(t.Context(), nil, "", append([]string{"providers", "--api", at}, c.args...)...)
			require.Equal(t, c.code, code, errOut)
			require.Contains(t, out+errOut, c.want)
			require.NotContains(t, errOut, "t0ken")
		})
	}
}

func TestATokenIsTakenFromAFileOrAVariable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, variable, want, refused string }{
		"neither":                {},
		"a variable":             {variable: "v", want: "v"},
		"a file":                 {file: file(t, "f", " f\r\n"), want: "f"},
		"a file before all":      {file: file(t, "f", "f\n"), variable: "v", want: "f"},
		"an empty file":          {file: file(t, "f", "\n"), variable: "v", refused: "f holds no token"},
		"a file that is not":     {file: "nowhere", refused: "--api-token-file: open nowhere"},
		"two lines":              {file: file(t, "f", "s3cret\ns3cret"), refused: "f holds more than a token"},
		"a variable of two":      {variable: "s3cret s3cret", refused: "EGRESSFLEET_API_TOKEN holds more than a token"},
		"a variable with a line": {variable: "s3cret\n", refused: "EGRESSFLEET_API_TOKEN holds more than a token"},
	} {
		token, err := tokenFrom(c.file, func(variable string) string {
			require.Equal(t, config.EnvAPIToken, variable)
			return c.variable
		})
		require.Equal(t, c.want, token, name)
		if c.refused == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.refused, name)
		require.NotContains(t, err.Error(), "s3cret", name)
		require.Equal(t, exitUsage, codeOf(err), name)
	}
}

func TestWhereTheAPIIs(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "[::1]:8080": "http://[::1]:8080",
		"https://api.example": "https://api.example", "http://a:1": "http://a:1",
		"a b": "", "ftp://a": "", "https://": "", "http://a/v1": "", "http://me@a": "", "http://a?b": "",
	} {
		got, err := baseOf(at)
		require.Equal(t, want, got, at)
		require.Equal(t, want == "", err != nil, at)
	}
}

// A test that sets a variable runs by itself.
func TestTheVariablesTokenIsShown(t *testing.T) { //nolint:paralleltest // it sets a variable
	api := httptest.NewServer(guardedAPI(t))
	t.Cleanup(api.Close)
	t.Setenv(config.EnvAPIToken, apiToken)
	out, errOut, code := run(t.Context(), nil, "", "providers", "--api", strings.TrimPrefix(api.URL, "http://"))
	require.Zero(t, code, errOut)
	require.Contains(t, out, "here  local")
}
