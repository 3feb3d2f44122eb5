package providers_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// TestAnInstanceInJSON pins the names that activity results in running histories have.
func TestAnInstanceInJSON(t *testing.T) {
	t.Parallel()
	full := providers.Instance{
		ID: "z/a", IP: "10.0.0.7", EgressIP: "203.0.113.7", State: providers.StateRunning, Reason: "started", Deleting: true,
		UID: "u", Installation: "dev", Owner: "default/a", SpecMark: "{}",
		CreatedAt: time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC),
	}
	text, err := json.Marshal(full)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"id": "z/a", "ip": "10.0.0.7", "egressIP": "203.0.113.7", "state": "Running", "reason": "started", "deleting": true,
		"uid": "u", "installation": "dev", "owner": "default/a", "specMark": "{}", "createdAt": "2026-01-02T03:04:05Z"
	}`, string(text))
	var read providers.Instance
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, full, read)

	text, err = json.Marshal(providers.Instance{ID: "z/a", State: providers.StateProvisioning})
	require.NoError(t, err)
	require.JSONEq(t, `{"id": "z/a", "state": "Provisioning"}`, string(text))
}
