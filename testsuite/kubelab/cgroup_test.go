//go:build linux

package kubelab

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAGroupHasWhatAKubeletWantsInBothVersionsOfControlGroups(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, text, want, is string }{
		"processors, in the first": {"cpuset.cpus", "0-1\n", "group/cpuset.cpus", "0-1\n"},
		"controllers, in the second": {
			"cgroup.controllers", "cpuset cpu io memory rdma pids\n", "cgroup.subtree_control", "+cpuset +cpu +io +memory +pids",
		},
		"none, beside the first": {"cgroup.controllers", "\n", "cgroup.subtree_control", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(root, tc.file), []byte(tc.text), 0o600))
			require.NoError(t, errors.Join(makeAll([]string{filepath.Join(root, "group")})...))
			text, _ := os.ReadFile(filepath.Join(root, tc.want)) // none, where nothing is wanted
			require.Equal(t, tc.is, string(text))
			require.DirExists(t, filepath.Join(root, "group"))
		})
	}
}
