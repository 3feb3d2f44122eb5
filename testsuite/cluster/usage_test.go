//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/usage"
)

func TestAllProcessesOfAKindAreCounted(t *testing.T) {
	t.Parallel()
	one := usage.Usage{
		RSS: 9 << 20, User: time.Second, Kernel: 200 * time.Millisecond, Children: 70 * time.Millisecond,
	}
	once := used{CPU: 1270 * time.Millisecond, Memory: 2 << 20}
	require.Equal(t, once, used{}.add(one, 2<<20))
	require.Equal(t, used{CPU: 2 * once.CPU, Memory: 2 * once.Memory}, once.add(one, 2<<20))
	require.Equal(t, "APIs 1.3 s and 4 MiB, workers 0.0 s and 1 MiB", told(
		map[string]used{"APIs": once},
		map[string]used{"APIs": {CPU: 2 * once.CPU, Memory: 4 << 20}, "workers": {Memory: 1 << 20}}))
}
