package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// onTheFake are the arguments of the target run-gcp-fake with ports of the test's own.
// Where a machine has only one address, the ports are all that tells the proxies apart.
func onTheFake(t *testing.T, root, dir string) (args []string, fake string) {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	flags := regexp.MustCompile(`--providers (\S+) --proxies (\S+) --beside '(.+)'`).FindStringSubmatch(string(makefile))
	require.NotNil(t, flags, "what `make run-gcp-fake` gives the starter")
	copied := func(name string, change ...string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		for n := 0; n < len(change); n += 2 {
			require.Contains(t, string(text), change[n])
			text = []byte(strings.ReplaceAll(string(text), change[n], change[n+1]))
		}
		file := filepath.Join(dir, filepath.Base(name))
		require.NoError(t, os.WriteFile(file, text, 0o600))
		return file
	}
	fake = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	return []string{
		"--providers", copied(flags[1], "127.0.0.1:8090", fake),
		"--proxies", copied(flags[2], "port: 3138", fmt.Sprintf("port: %d", freePort(t)),
			"port: 3139", fmt.Sprintf("port: %d", freePort(t))),
		"--beside", flags[3] + " -listen " + fake + " -task 200ms",
	}, fake
}

// What `make run-gcp-fake` runs: the real provider before the fake of Compute Engine,
// whose instances carry a CONNECT, and of which nothing is left.
func TestAFleetOnTheFakeOfComputeEngineCarriesTraffic(t *testing.T) {
	t.Parallel()
	root, err := devserver.Root()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "dev")
	args, fake := onTheFake(t, root, t.TempDir())
	run := startDev(t, devEnv(t, dir), args...)
	_, page := run.curl()
	w := &world{t: t}
	_, err = fmt.Sscanf(page, "http://127.0.0.1:%d/healthz", &w.api)
	require.NoError(t, err)

	target := site(t, true)
	var found []string
	require.Eventually(t, func() bool { found = w.endpoints(); return len(found) == 2 }, soon, tick)
	for _, proxy := range found {
		require.Contains(t, fetch(t, proxy, target), "hello")
	}
	for _, p := range w.list() {
		require.Equal(t, "gcp", p.Spec.Provider)
		require.Contains(t, p.Status.ProviderID, "zones/us-central1-")
	}

	run.interrupt()
	require.NoDirExists(t, dir, "the state would tell of instances that are nowhere")
	for _, at := range append(found, fake) {
		_, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
		require.Error(t, err, "nobody listens at %s any more", at)
	}
}
