package v1_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// at is a moment of the golden Proxy.
func at(hour, minute, second int) time.Time {
	return time.Date(2026, time.January, 2, hour, minute, second, 0, time.UTC)
}

// full has a value in every field that has JSON.
func full() v1.Proxy {
	yes := true
	return v1.Proxy{
		Metadata: v1.Metadata{
			Namespace: "default", Name: "paris-1", UID: "01f0c0de-0000-7000-8000-000000000001", Generation: 3,
			Labels:    map[string]string{"team": "crawlers", "example.com/pool": "b"},
			CreatedAt: at(3, 4, 5),
		},
		Spec: v1.ProxySpec{
			Provider: "gcp",
			Placement: v1.Placement{
				Region: "europe-west9", Zone: "europe-west9-a", MachineType: "e2-micro", Image: "debian-12",
			},
			CloudInit: v1.CloudInit{SecretRef: &v1.SecretRef{Name: "proxy", Key: "user-data"}},
			Port:      3128,
			HealthCheck: v1.HealthCheck{
				Disabled: true, Target: "example.com:443", ReplaceAfter: "10m",
				ProxyAuthRef: &v1.SecretRef{Name: "proxy", Key: "auth"},
			},
			Deadlines: v1.Deadlines{Provisioning: "30m", FirstHealthy: "15m", Delete: "1h30m"},
		},
		Status: v1.ProxyStatus{
			Phase: v1.PhaseRunning, ProviderID: "europe-west9-a/proxy-abcdefghijklmnop",
			IP: "10.0.0.7", EgressIP: "203.0.113.7", Healthy: &yes, Held: true,
			ObservedGeneration: 3, SpecHash: "v1-abc",
			Conditions: []v1.Condition{{
				Type: v1.ConditionProvisioned, Status: v1.ConditionTrue, Reason: v1.ReasonCreated,
				Message: "the instance runs", LastTransitionTime: at(3, 4, 10),
			}},
			Since: at(3, 4, 10), NextAttemptAt: at(3, 5, 10), InstanceCreatedAt: at(3, 4, 6),
		},
	}
}

// TestAProxyInJSON pins the names that clients, histories and the command line read.
func TestAProxyInJSON(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("testdata/proxy.json")
	require.NoError(t, err)
	got, err := json.MarshalIndent(full(), "", "  ")
	require.NoError(t, err)
	require.Equal(t, string(golden), string(got)+"\n")

	decoder := json.NewDecoder(bytes.NewReader(golden))
	decoder.DisallowUnknownFields()
	var read v1.Proxy
	require.NoError(t, decoder.Decode(&read))
	require.Equal(t, full(), read)
}

func TestAProxyInJSONLeavesOutWhatIsNotSet(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(v1.Proxy{})
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"namespace":"","name":""},"spec":{"provider":"","port":0}}`, string(got))
}

func TestInlineUserDataInJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal([]v1.CloudInit{{Inline: "#!/bin/sh"}, {InlineBase64: "AP8="}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"inline":"#!/bin/sh"},{"inlineBase64":"AP8="}]`, string(got))
}
