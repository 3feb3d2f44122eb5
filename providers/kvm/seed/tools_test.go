//go:build tools

package seed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/kvm/seed"
)

// TestOthersReadTheSeed has two readers that are not the writer's look for the label
// and the exact names that cloud-init asks for.
func TestOthersReadTheSeed(t *testing.T) {
	t.Parallel()
	s := someSeed()
	s.NetworkConfig = []byte("version: 2\n")
	image, err := s.ISO()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "seed.iso")
	require.NoError(t, os.WriteFile(path, image, 0o600))

	require.Equal(t, "cidata", run(t, "blkid", "-o", "value", "-s", "LABEL", path))
	require.Equal(t, "iso9660", run(t, "blkid", "-o", "value", "-s", "TYPE", path))
	into := filepath.Join(t.TempDir(), "out")
	run(t, "xorriso", "-osirrox", "on", "-indev", path, "-extract", "/", into)
	entries, err := os.ReadDir(into)
	require.NoError(t, err)
	require.Len(t, entries, 4)
	for name, content := range map[string][]byte{
		"user-data": s.UserData, "vendor-data": s.VendorData, "network-config": s.NetworkConfig,
	} {
		extracted, err := os.ReadFile(filepath.Join(into, name))
		require.NoError(t, err)
		require.Equal(t, content, extracted, name)
	}
	require.FileExists(t, filepath.Join(into, "meta-data"))
}

// TestAgentScriptIsShell asks a shell to read the script without running it.
func TestAgentScriptIsShell(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.sh")
	require.NoError(t, os.WriteFile(path, seed.AgentVendorData(), 0o600))
	run(t, "sh", "-n", path)
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s:\n%s", name, strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}
