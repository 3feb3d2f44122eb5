package ports_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/ports"
)

// askOnly makes this test binary a second process that takes ports and prints them.
const askOnly = "EGRESSFLEET_TEST_TAKE_PORTS"

func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv(askOnly)); err == nil {
		for range n {
			port, err := ports.Take()
			if err != nil {
				panic(err)
			}
			fmt.Println(port)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestNoPortIsGivenTwice(t *testing.T) {
	t.Parallel()
	const each, callers = 100, 8
	var mu sync.Mutex
	seen := map[int]int{}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				port, err := ports.Take()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[port]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, each*callers)
	for _, port := range others(t, 400) {
		require.NotContains(t, seen, port, "another process has it")
	}
}

// others are ports that another process takes while this one has its own.
func others(t *testing.T, n int) (taken []int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), askOnly+"="+strconv.Itoa(n))
	out, err := cmd.Output()
	require.NoError(t, err)
	for _, line := range strings.Fields(string(out)) {
		port, err := strconv.Atoi(line)
		require.NoError(t, err, line)
		taken = append(taken, port)
	}
	require.Len(t, taken, n)
	return taken
}

func TestAPortThatIsGivenCanBeListenedOn(t *testing.T) {
	t.Parallel()
	port, err := ports.Take()
	require.NoError(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
