package config_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/internal/config"
)

// environment is an envconfig.EnvLookup over a map.
type environment map[string]string

func (e environment) LookupEnv(key string) (string, bool) { v, ok := e[key]; return v, ok }

func (e environment) Environ() []string {
	var lines []string
	for k, v := range e {
		lines = append(lines, k+"="+v)
	}
	return lines
}

var fallback = config.Temporal{Host: "::1", Port: 7233, Namespace: "fallback"}

func TestWhereTemporalIs(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(profile, []byte("[profile.default]\naddress = \"profile:1\"\n"), 0o600))
	tests := map[string]struct {
		env                      environment
		address, namespace, from string
	}{
		"our settings where nothing else speaks": {
			environment{"TEMPORAL_CONFIG_FILE": os.DevNull}, "[::1]:7233", "fallback", "EGRESSFLEET_TEMPORAL_PORT",
		},
		"the variables of Temporal before ours": {
			environment{
				"TEMPORAL_CONFIG_FILE": os.DevNull, "TEMPORAL_ADDRESS": "there:7", "TEMPORAL_NAMESPACE": "ns",
			}, "there:7", "ns", "TEMPORAL_ADDRESS",
		},
		"the profile file before our settings": {
			environment{"TEMPORAL_CONFIG_FILE": profile}, "profile:1", "fallback", "profile file",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := fallback.Server(tt.env, slog.Default())
			require.NoError(t, err)
			require.Equal(t, tt.address, got.Options.HostPort)
			require.Equal(t, tt.namespace, got.Options.Namespace)
			require.Contains(t, got.From, tt.from)
		})
	}
}

func TestAWrongTemporalVariableIsNamedWithoutItsKey(t *testing.T) {
	t.Parallel()
	_, err := fallback.Server(environment{
		"TEMPORAL_CONFIG_FILE": os.DevNull, "TEMPORAL_TLS_CLIENT_CERT_DATA": "cert",
		"TEMPORAL_TLS_CLIENT_KEY_DATA": "sentinel-key", "TEMPORAL_API_KEY": "sentinel-token",
	}, slog.Default())
	require.ErrorContains(t, err, "TEMPORAL_*")
	require.NotContains(t, err.Error(), "sentinel")
}
