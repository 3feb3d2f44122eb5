//go:build tools

package runbooks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const install = "install.md"

func TestTheCommandsOfInstallMakeAFleetAndTakeItAway(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.installs("")
	s.sees()
	s.drains()
}

// installs types the steps, but for that which builds, and more before the last one.
func (s *session) installs(more string) {
	s.t.Helper()
	said := s.types(s.block(install, "--retention 7d", "7233"))
	require.Contains(s.t, said, "Total: 0", "the namespace is empty")
	described := s.types("bin/temporal operator namespace describe --namespace default --output json")
	require.Contains(s.t, described, `"workflowExecutionRetentionTtl": "604800s"`)
	s.types(s.block(install, "> keys/2026-11"))
	s.types(s.block(install, "> tokens.yaml"))
	s.types(s.block(install, "> worker.yaml", "8081", "8444", "9465"))
	s.types(more + s.block(install, "bin/worker --config"))
}

// sees types how to see that it is done, and looks at one answer after the other.
func (s *session) sees() {
	s.t.Helper()
	said := strings.Split(s.types(s.block(install, "/v1/providers", "3140", "8081")), "\n")
	require.Greater(s.t, len(said), 4, said)
	var loaded v1.ProviderList
	require.NoError(s.t, json.Unmarshal([]byte(said[0]), &loaded), said[0])
	require.Equal(s.t, "Loaded", string(loaded.Configuration.State))
	require.Len(s.t, loaded.Items, 1)
	require.Equal(s.t, "local", loaded.Items[0].Name)
	var first v1.Proxy
	require.NoError(s.t, json.Unmarshal([]byte(said[1]), &first), said[1])
	require.Equal(s.t, v1.PhaseRunning, first.Status.Phase)
	require.Equal(s.t, "http://"+first.Status.IP+":"+s.port("3140"), said[2], "it is in discovery")
	require.Regexp(s.t, `(?m)^next run: +in `, strings.Join(said[3:], "\n"))
	require.Equal(s.t, "401", said[len(said)-1])
	require.Len(s.t, s.instances(), 1)
}

// drains types the last section, and then stops the worker that was started last.
func (s *session) drains() {
	s.t.Helper()
	said := s.types(s.block(install, "drain --all"))
	require.True(s.t, strings.HasSuffix(said, "nothing is left"), said)
	require.Empty(s.t, s.instances())
	s.types("kill $!; wait $!")
}

// instances are the processes of the provider local, which outlive their worker, by the
// file that each has as long as it may live.
func (s *session) instances() (pids []int) {
	s.t.Helper()
	files, err := filepath.Glob(s.path("instances/*/*/*/alive"))
	require.NoError(s.t, err)
	for _, file := range files {
		text, _ := os.ReadFile(file) // one that has gone meanwhile is nobody's
		for line := range strings.Lines(string(text)) {
			number, _ := strings.CutPrefix(line, "pid ")
			if pid, err := strconv.Atoi(strings.TrimSpace(number)); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
