package usage

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	status = "Name:\tworker\nUid:\t65532\t65532\t65532\t65532\nVmHWM:\t  120856 kB\nVmRSS:\t   88132 kB\n" +
		"RssAnon:\t   83176 kB\nRssFile:\t    4956 kB\n"
	stat = "42 (a name) with (brackets) S 1 42 42 0 -1 4194560 34275 0 1834 0 335 7500 120 3 20 0 10 0 1 1 1"
)

func TestUsageIsReadFromProc(t *testing.T) {
	t.Parallel()
	u, err := Parse(status, stat)
	require.NoError(t, err)
	require.Equal(t, Usage{
		RSS: 88132 << 10, Most: 120856 << 10, Own: 83176 << 10, Files: 4956 << 10, MajorFaults: 1834,
		User: 3350 * time.Millisecond, Kernel: 75 * time.Second, Children: 1230 * time.Millisecond,
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

func TestAFamilyIsAProcessAndAllThatItStarted(t *testing.T) {
	t.Parallel()
	// The fields after the name: state, parent, and from the twelfth on user, kernel, and those of ended children.
	of := func(parent, user, kernel, childrenUser, childrenKernel string) string {
		return "1 (a name) S " + parent + " 1 1 0 -1 0 0 0 0 0 " + user + " " + kernel + " " + childrenUser + " " +
			childrenKernel + " 20 0"
	}
	stats := map[int]string{
		10: of("1", "100", "10", "1000", "200"), 11: of("10", "5", "5", "0", "0"), 12: of("11", "30", "0", "0", "0"),
		20: of("1", "9999", "0", "0", "0"), 21: of("20", "7", "0", "0", "0"),
	}
	all, err := family(stats, 10)
	require.NoError(t, err)
	require.Equal(t, 13500*time.Millisecond, all)
	_, err = family(map[int]string{10: "10 (cut) S 1"}, 10)
	require.ErrorContains(t, err, "2 fields after the name")

	mine, err := Family(os.Getpid())
	require.NoError(t, err)
	require.GreaterOrEqual(t, mine, time.Duration(0))
	_, err = Family(1 << 30)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTheShareIsReadFromProc(t *testing.T) {
	t.Parallel()
	share, err := ParseShare("55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:    9 kB\nPss:    2048 kB\nPss_Dirty:  7 kB\n")
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, share)
	_, err = ParseShare("")
	require.Error(t, err)
}
