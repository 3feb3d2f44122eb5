//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUsageIsReadFromTheFilesOfAProcess(t *testing.T) {
	t.Parallel()
	stat := "17 (a (strange) name) S 1 17 17 0 -1 4194560 5 6 7 8 100 20 3 4 20 0 1 0 99 1024 7\n"
	rollup := "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:        9 kB\nPss:            2048 kB\nPss_Dirty:      7 kB\n"
	once := usage{CPU: 1270 * time.Millisecond, Memory: 2 << 20}
	require.Equal(t, once, usage{}.add(stat, rollup))
	require.Equal(t, usage{CPU: 2 * once.CPU, Memory: 2 * once.Memory}, once.add(stat, rollup))
	require.Equal(t, usage{}, usage{}.add("", ""), "one that has ended meanwhile")
	require.Equal(t, "APIs 1.3 s and 4 MiB, workers 0.0 s and 1 MiB", told(
		map[string]usage{"APIs": once},
		map[string]usage{"APIs": {CPU: 2 * once.CPU, Memory: 4 << 20}, "workers": {Memory: 1 << 20}}))
}
