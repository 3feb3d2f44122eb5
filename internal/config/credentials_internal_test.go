package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/output"
)

// Every call to Temporal asks for the key, and looks once a second.
func TestAKeyFileThatStaysBadIsToldOnce(t *testing.T) {
	t.Parallel()
	var log output.Log
	k := &keyFile{
		path: filepath.Join(t.TempDir(), "key"), key: "first", log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	told := func() int {
		k.looked = time.Time{}
		key, err := k.now(t.Context())
		require.NoError(t, err)
		require.Equal(t, "first", key)
		return strings.Count(log.String(), "level=ERROR")
	}
	require.Equal(t, 1, told())
	require.Equal(t, 1, told())
	require.NoError(t, os.WriteFile(k.path, nil, 0o600))
	require.Equal(t, 2, told(), "another fault")
	require.NoError(t, os.WriteFile(k.path, []byte("first"), 0o600))
	require.Equal(t, 2, told())
	require.NoError(t, os.Remove(k.path))
	require.Equal(t, 3, told(), "it was over in between")
}
