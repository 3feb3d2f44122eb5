package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// quiet keeps the machine's own TEMPORAL_* settings out of a test.
func quiet(t *testing.T) {
	t.Helper()
	t.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "EGRESSFLEET_TEMPORAL_PORT"} {
		t.Setenv(name, "") // restores it afterwards
		require.NoError(t, os.Unsetenv(name))
	}
}

func TestWhereTheCommandLineFindsTemporal(t *testing.T) {
	tests := map[string]struct {
		env                      map[string]string
		flags                    Temporal
		address, namespace, from string
	}{
		"nothing is said": {address: "127.0.0.1:7233", namespace: "default", from: "EGRESSFLEET_TEMPORAL_PORT"},
		"the port of make run": {
			env: map[string]string{"EGRESSFLEET_TEMPORAL_PORT": "7"}, address: "127.0.0.1:7", namespace: "default",
			from: "EGRESSFLEET_TEMPORAL_PORT",
		},
		"Temporal's own variables": {
			env: map[string]string{
				"TEMPORAL_ADDRESS": "there:1", "TEMPORAL_NAMESPACE": "ns", "EGRESSFLEET_TEMPORAL_PORT": "7",
			},
			address: "there:1", namespace: "ns", from: "TEMPORAL_ADDRESS",
		},
		"flags before all": {
			env:     map[string]string{"TEMPORAL_ADDRESS": "there:1", "TEMPORAL_NAMESPACE": "ns"},
			flags:   Temporal{Address: "here:2", Namespace: "mine"},
			address: "here:2", namespace: "mine", from: "--temporal-address",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			for key, value := range tt.env {
				t.Setenv(key, value)
			}
			got, err := serverOf(tt.flags)
			require.NoError(t, err)
			require.Equal(t, tt.address, got.Options.HostPort)
			require.Equal(t, tt.namespace, got.Options.Namespace)
			require.Contains(t, got.From, tt.from)
		})
	}
}

func TestKeysThatCannotBeReadAreToldBeforeTemporalIsAsked(t *testing.T) {
	quiet(t)
	t.Setenv("EGRESSFLEET_CODEC_KEYS", filepath.Join(t.TempDir(), "nowhere"))
	_, _, err := connect(t.Context(), Temporal{Address: "127.0.0.1:1"})
	require.ErrorContains(t, err, "the directory of keys")
	require.ErrorContains(t, err, "nowhere")
	require.Equal(t, exitUsage, ExitCode(io.Discard, err))
}

func TestATemporalThatIsNotThereIsNamed(t *testing.T) {
	quiet(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, _, err = connect(t.Context(), Temporal{Address: address})
	require.ErrorContains(t, err, "temporal at "+address+" (from --temporal-address) cannot be reached")
}
