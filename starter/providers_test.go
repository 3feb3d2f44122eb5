package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/api/client"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// answering is the address of an API that gives one answer.
func answering(t *testing.T, status int, body any) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/providers" {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func providerList(c v1.ProviderConfiguration, items ...v1.Provider) v1.ProviderList {
	c.File = "providers.yaml"
	return v1.ProviderList{Configuration: c, Items: append([]v1.Provider{}, items...)}
}

func TestProvidersAreATableAndTheStateOfTheirFile(t *testing.T) {
	t.Parallel()
	local := v1.Provider{Name: "here", Type: "local", LoadedAt: noon.Add(-3 * time.Hour)}
	const row = "NAME  TYPE   AGE  CHECK\nhere  local  3h   not yet\n"
	checked, bare := local, local
	at := noon.Add(-time.Minute)
	bare.Name, bare.Check = "bare", &v1.ProviderCheck{CheckedAt: at}
	checked.Check = &v1.ProviderCheck{Supported: true, CheckedAt: at, Unlisted: 1, Targets: []v1.ProviderTarget{
		{Target: "a", Ready: true, Reason: "Reachable", Details: map[string]string{"mem": "1", "cpu": "2"}},
		{Target: "b", Reason: "Forbidden", Message: "403:\nno"},
	}}
	away := providerList(v1.ProviderConfiguration{State: v1.ConfigurationLoaded}, local)
	away.Checks.Error = "connection\nrefused"
	for name, c := range map[string]struct {
		list v1.ProviderList
		want string
	}{
		"loaded": {providerList(v1.ProviderConfiguration{State: v1.ConfigurationLoaded}, local), row},
		"checked": {
			providerList(v1.ProviderConfiguration{State: v1.ConfigurationLoaded}, bare, checked),
			"NAME  TYPE   AGE  CHECK\nbare  local  3h   unsupported\nhere  local  3h   1 of 3 ready\n\n" +
				"PROVIDER  TARGET      READY  REASON     MESSAGE      AGE\n" +
				"here      a           yes    Reachable  cpu=2 mem=1  1m\n" +
				"here      b           no     Forbidden  403: no      1m\n" +
				"here      and 1 more  -      -          -            1m\n",
		},
		"not asked": {away, row + "\nchecks: connection refused\n"},
		"none":      {providerList(v1.ProviderConfiguration{State: v1.ConfigurationLoaded}), "no providers\n"},
		"retained": {
			providerList(v1.ProviderConfiguration{
				State: v1.ConfigurationRetained, Error: "bad\nkey",
				Since: noon.Add(-time.Minute), LoadedAt: noon.Add(-61 * time.Minute),
			}, local),
			row + "\nproviders.yaml cannot be used for 1m, these are from 1h before that: bad key\n",
		},
		"failed": {
			providerList(v1.ProviderConfiguration{State: v1.ConfigurationFailed, Error: "bad", Since: noon.Add(-time.Minute)}),
			"no providers\n\nproviders.yaml cannot be used for 1m, and never could: bad\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, code := run(t.Context(), nil, "", "providers", "--api", answering(t, http.StatusOK, c.list))
			require.Zero(t, code, errOut)
			require.Equal(t, c.want, out)
		})
	}
}

func TestProvidersAsJSON(t *testing.T) {
	t.Parallel()
	list := providerList(v1.ProviderConfiguration{State: v1.ConfigurationLoaded, LoadedAt: noon})
	out, _, code := run(t.Context(), nil, "", "providers", "-o", "json", "--api", answering(t, http.StatusOK, list))
	require.Zero(t, code)
	require.JSONEq(t, `{"configuration": {"state": "Loaded", "file": "providers.yaml", "loadedAt": "`+
		noon.Format(time.RFC3339)+`"}, "items": [], "checks": {}}`, out)
}

func TestAnAPIThatCannotTellSaysWhy(t *testing.T) {
	t.Parallel()
	at := answering(t, http.StatusNotFound, client.Problem{
		Type: "urn:egressfleet:problem:not-found", Detail: "no providers file", Status: http.StatusNotFound,
	})
	_, errOut, code := run(t.Context(), nil, "", "providers", "--api", at)
	require.Equal(t, exitFailure, code)
	require.Equal(t, "starter: the API at "+at+" answers 404 Not Found: no providers file\n", errOut)

	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no route to the API", http.StatusBadGateway)
	}))
	t.Cleanup(between.Close)
	_, errOut, code = run(t.Context(), nil, "", "providers", "--api", strings.TrimPrefix(between.URL, "http://"))
	require.Equal(t, exitFailure, code)
	require.Contains(t, errOut, `answers 502 Bad Gateway: 502 Bad Gateway: "no route to the API\n"`)

	gone := httptest.NewServer(nil)
	gone.Close()
	_, errOut, code = run(t.Context(), nil, "", "providers", "--api", strings.TrimPrefix(gone.URL, "http://"))
	require.Equal(t, exitUnavailable, code)
	require.Contains(t, errOut, "cannot be reached")

	_, errOut, code = run(t.Context(), nil, "", "providers", "--api", "a b")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, `--api: "a b" is neither host:port nor https://host:port`)
}
