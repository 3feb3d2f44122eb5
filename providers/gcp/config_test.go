package gcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/gcp"
	"github.com/egressfleet/egressfleet/providers/registry"
)

func TestAConfigurationIsRefusedByKeyAndValue(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		`"project": ""`:                                 `project: ""`,
		`"project": "123456789012"`:                     `project: "123456789012"`,
		`"zones": ["us-central1"]`:                      `zones[0]: "us-central1"`,
		`"zones": ["us-central1-a", "a/b"]`:             `zones[1]: "a/b"`,
		`"zones": ["us-central1-a", "us-central1-a"]`:   `zones[1]: "us-central1-a"`,
		`"machineType": "E2"`:                           `machineType: "E2"`,
		`"image": "my image"`:                           `image: "my image"`,
		`"network": "a/b"`:                              `network: "a/b"`,
		`"subnetwork": "../x"`:                          `subnetwork: "../x"`,
		`"networkTag": "-x"`:                            `networkTag: "-x"`,
		`"diskSizeGb": -1`:                              `diskSizeGb: -1`,
		`"diskType": "pd/ssd"`:                          `diskType: "pd/ssd"`,
		`"labels": {"Team": "x"}`:                       `labels: "Team"`,
		`"labels": {"team": "X"}`:                       `labels[team]: "X"`,
		`"labels": {"proxy-operator-uid": "x"}`:         `labels: "proxy-operator-uid"`,
		`"serviceAccount": "me"`:                        `serviceAccount: "me"`,
		`"addressing": "both"`:                          `addressing: "both"`,
		`"firewall": "off"`:                             `firewall: "off"`,
		`"firewall": "managed"`:                         `sourceRanges: []`,
		`"sourceRanges": ["10.0.0.0/8"]`:                `sourceRanges: ["10.0.0.0/8"]`,
		`"firewall": "managed", "sourceRanges": ["x"]`:  `sourceRanges[0]: "x"`,
		`"stockoutMemory": "soon"`:                      `stockoutMemory: "soon"`,
		`"callTimeout": "-1s"`:                          `callTimeout: "-1s"`,
		`"endpoint": "compute.googleapis.com"`:          `endpoint: is not the URL`,
		`"endpoint": "https://u:s3ntinel@example.com"`:  `endpoint: is not the URL`,
		`"endpoint": "http://example.com"`:              `endpoint: "http://example.com"`,
		`"insecureNoAuthentication": true`:              `insecureNoAuthentication: true`,
		`"zone": "us-central1-a"`:                       `zone`,
		`"firewall": {"mode": "managed"}`:               `firewall: is a mapping, want string`,
		`"firewall": "managed", "sourceRanges": [null]`: `sourceRanges[0]: ""`,
		`"endpoint": "http://127.0.0.1:1", "insecureNoAuthentication": true, "credentialsFile": "k"`: `credentialsFile: "k"`,
	} {
		_, err := build(t, `{"project": "example-proj", `+change+`}`)
		if strings.HasPrefix(change, `"project"`) {
			_, err = build(t, `{`+change+`}`)
		}
		require.ErrorContains(t, err, want, change)
		require.NotContains(t, err.Error(), "s3ntinel")
	}
}

func build(t *testing.T, block string) (providers.Provider, error) {
	t.Helper()
	factory := registry.NewFactory(gcp.Type, func(
		ctx context.Context, env registry.Env, cfg gcp.Config,
	) (*gcp.Provider, error) {
		return gcp.New(ctx, env.Name, env.Installation, cfg)
	})
	return factory.Build(t.Context(), registry.Env{Name: "gcp", Installation: "test"}, json.RawMessage(block))
}

// Nothing is asked before the first call, whatever is missing then.
func TestAConstructorCallsNobody(t *testing.T) {
	t.Parallel()
	for _, block := range []string{
		`{"project": "example-proj"}`,
		`{"project": "example-proj", "credentialsFile": "/nowhere/key.json"}`,
		`{"project": "example.com:example-proj", "endpoint": "https://192.0.2.1:1"}`,
	} {
		p, err := build(t, block)
		require.NoError(t, err, block)
		require.NoError(t, providers.Close(p))
	}
	l := newLab(t)
	l.reopen(installation)
	require.Empty(t, l.cloud.Calls())
}

func TestNoAuthenticationIsAWarning(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	ctx := providers.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
	_, err := gcp.New(ctx, "gcp", "test", gcp.Config{
		Project: project, Endpoint: "http://127.0.0.1:1", InsecureNoAuthentication: true,
	})
	require.NoError(t, err)
	require.Contains(t, lines.String(), "level=WARN")
	require.Contains(t, lines.String(), "http://127.0.0.1:1")
}

func TestCloseEndsIdleConnections(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(request())
	require.NotZero(t, l.gate.open())
	require.NoError(t, l.Provider.(*gcp.Provider).Close())
	require.Eventually(t, func() bool { return l.gate.open() == 0 }, soon, tick)
}

// The sample's user-data installs a proxy, on an image that reads it, on the sample's port.
func TestTheSampleInstallsAProxyOnItsImage(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "samples", "gcp", name))
		require.NoError(t, err)
		return text
	}
	var proxy struct {
		Spec struct {
			Port      int
			Placement providers.Placement
			CloudInit struct{ Inline string }
		}
	}
	require.NoError(t, yaml.Unmarshal(read("proxy.yaml"), &proxy))
	var cloudInit struct {
		Packages   []string
		WriteFiles []struct{ Path, Content string } `json:"write_files"`
	}
	text, isCloudConfig := strings.CutPrefix(proxy.Spec.CloudInit.Inline, "#cloud-config\n")
	require.True(t, isCloudConfig, "cloud-init knows it by its first line")
	require.NoError(t, yaml.Unmarshal([]byte(text), &cloudInit))
	require.Contains(t, cloudInit.Packages, "tinyproxy")
	require.Contains(t, cloudInit.WriteFiles[0].Content, "Port 3128\n")
	require.Equal(t, 3128, proxy.Spec.Port)
	require.NotContains(t, cloudInit.WriteFiles[0].Content, "Allow 0.0.0.0/0", "it is no open proxy")
	require.Empty(t, proxy.Spec.Placement.Image)
	require.Contains(t, string(read("providers.yaml")), "image: ubuntu-os-cloud/", "which runs cloud-init")
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "providers", "gcp.md"))
	require.NoError(t, err)
	require.Contains(t, string(guide), "labels."+providers.MarkManaged+"="+providers.MarkManagedYes,
		"the guide filters by the label that is written")
}

// The guide's role is what the check asks for.
func TestTheGuidesRoleHasEveryPermission(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "providers", "gcp.md"))
	require.NoError(t, err)
	_, role, found := strings.Cut(string(guide), "includedPermissions:\n")
	require.True(t, found)
	role, _, found = strings.Cut(role, "EOF")
	require.True(t, found)
	l := newLab(t)
	var listed []string
	for line := range strings.Lines(role) {
		listed = append(listed, strings.TrimSpace(strings.TrimPrefix(line, "- ")))
	}
	require.Equal(t, gcp.Needed(l.Provider), listed)
}
