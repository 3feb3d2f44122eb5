package kvm

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

func sample(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "samples", "kvm", name))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into))
}

func TestTheSampleNamesWhatTheSampleConfigures(t *testing.T) {
	t.Parallel()
	var file struct {
		Providers []struct {
			Name, Type string
			KVM        json.RawMessage
		}
	}
	sample(t, "providers.yaml", &file)
	var cfg Config
	require.NoError(t, json.Unmarshal(file.Providers[0].KVM, &cfg))
	p, err := New(t.Context(), file.Providers[0].Name, installation, cfg)
	require.NoError(t, err)
	var proxy v1.Proxy
	sample(t, "proxy.yaml", &proxy)
	require.Equal(t, file.Providers[0].Name, proxy.Spec.Provider)
	req := request("sample")
	req.Placement.Region, req.Placement.Zone = proxy.Spec.Placement.Region, proxy.Spec.Placement.Zone
	req.Placement.MachineType, req.Placement.Image = proxy.Spec.Placement.MachineType, proxy.Spec.Placement.Image
	o, err := p.accept(req)
	require.NoError(t, err)
	require.NotEmpty(t, o.hosts)
}

// The sample's user-data installs a proxy and the agent, on the sample's port, and not for
// everybody.
func TestTheSampleInstallsAProxyOnItsImage(t *testing.T) {
	t.Parallel()
	var proxy v1.Proxy
	sample(t, "proxy.yaml", &proxy)
	text, isCloudConfig := strings.CutPrefix(proxy.Spec.CloudInit.Inline, "#cloud-config\n")
	require.True(t, isCloudConfig, "cloud-init knows it by its first line")
	var cloudInit struct {
		Packages []string
		RunCmd   [][]string `json:"runcmd"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &cloudInit))
	require.ElementsMatch(t, []string{"tinyproxy", "qemu-guest-agent"}, cloudInit.Packages)
	require.Contains(t, cloudInit.RunCmd[0], "s/^Port .*/Port "+strconv.Itoa(proxy.Spec.Port)+"/")
	require.Contains(t, strings.Join(cloudInit.RunCmd[1], " "), "Allow 192.168.122.0/24")
}

func TestTheGuideTellsTheOrderOfSources(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "providers", "kvm.md"))
	require.NoError(t, err)
	told := map[string]string{"lease": "Lease", "guest agent": "guest agent", "ARP": "neighbour table"}
	var order []string
	for _, s := range sources() {
		order = append(order, told[s.name])
	}
	require.Contains(t, string(guide), "| address | "+strings.Join(order, ", then ")+".")
}

func TestAConstructorDialsNothing(t *testing.T) {
	t.Parallel()
	var listening net.ListenConfig
	sshd, err := listening.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := newLab("a").cfg
	cfg.Hosts[0].Address = sshd.Addr().String()
	p, err := New(t.Context(), providerName, installation, cfg)
	require.NoError(t, err, "files that are not there yet may come")
	require.Equal(t, []string{"key", "known_hosts"}, p.CredentialFiles())
	require.NoError(t, p.Close())
	var dialer net.Dialer
	ours, err := dialer.DialContext(t.Context(), "tcp", sshd.Addr().String())
	require.NoError(t, err)
	first, err := sshd.Accept()
	require.NoError(t, err)
	require.Equal(t, ours.LocalAddr().String(), first.RemoteAddr().String(), "nobody was there before")
	require.NoError(t, errors.Join(first.Close(), ours.Close(), sshd.Close()))
}

func TestFilesThatCannotBeRightAreRefused(t *testing.T) {
	t.Parallel()
	cfg := newLab("a").cfg
	cfg.Hosts[0].KeyFile = filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(cfg.Hosts[0].KeyFile, []byte("s3ntinel"), 0o600))
	_, err := New(t.Context(), providerName, installation, cfg)
	require.ErrorContains(t, err, "hosts[0]: ")
	require.ErrorContains(t, err, "keyFile")
	require.NotContains(t, err.Error(), "s3ntinel")
}

func TestNamesMustBeLabels(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), "A", installation, newLab("a").cfg)
	require.ErrorContains(t, err, `name: "A"`)
	_, err = New(t.Context(), providerName, "a/b", newLab("a").cfg)
	require.ErrorContains(t, err, `installation: "a/b"`)
}
