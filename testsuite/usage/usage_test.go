package usage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	status = "Name:\tworker\nUid:\t65532\t65532\t65532\t65532\nVmHWM:\t  120856 kB\nVmRSS:\t   88132 kB\n" +
		"RssAnon:\t   83176 kB\nRssFile:\t    4956 kB\n"
	stat = "42 (a name) with (brackets) S 1 42 42 0 -1 4194560 34275 0 1834 0 335 7500 0 0 20 0 10 0 1 1 1"
)

func TestUsageIsReadFromProc(t *testing.T) {
	t.Parallel()
	u, err := Parse(status, stat)
	require.NoError(t, err)
	require.Equal(t, Usage{
		RSS: 88132 << 10, Most: 120856 << 10, Own: 83176 << 10, Files: 4956 << 10, MajorFaults: 1834,
		User: 3350 * time.Millisecond, Kernel: 75 * time.Second,
	}, u)
	require.Equal(t, "rss=86.1MiB rss_max=118.0MiB own=81.2MiB files=4.8MiB major_faults=1834 user=3.35s kernel=1m15s",
		u.String())
	for name, broken := range map[string][2]string{
		"no status": {"", stat}, "no stat": {status, ""}, "a stat that is cut off": {status, stat[:40]},
	} {
		_, err := Parse(broken[0], broken[1])
		require.Error(t, err, name)
	}
}
