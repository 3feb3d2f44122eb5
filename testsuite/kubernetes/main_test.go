//go:build integration && linux

package kubernetes

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/kubelab"
)

const (
	soon = 5 * time.Minute // generous: the machine may be busy
	tick = 100 * time.Millisecond
)

const (
	wantKwok = 500
	wantReal = 20
)

// counted is what the tests have seen; the last line tells it.
var counted struct{ kwok, real, duplicates, left, rules atomic.Int64 }

func TestMain(m *testing.M) {
	flag.Parse()
	if err := kubelab.Prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(kubelab.Isolated(func() int { return verdict(m.Run()) }))
}

// verdict prints the last line of a run of everything, and returns its exit code. Counts
// that are not what they should be fail a run whose tests have all passed.
func verdict(code int) int {
	if code != 0 || some() {
		return code
	}
	fmt.Printf("kubernetes: kwok_pods=%d real_pods=%d duplicates=%d left_pods=%d rbac_rules=%d\n", counted.kwok.Load(),
		counted.real.Load(), counted.duplicates.Load(), counted.left.Load(), counted.rules.Load())
	if counted.kwok.Load() != wantKwok || counted.real.Load() != wantReal || counted.rules.Load() == 0 ||
		counted.duplicates.Load()+counted.left.Load() != 0 {
		return 1
	}
	return 0
}

// some reports whether this run is about a part of the tests.
func some() bool {
	run := flag.Lookup("test.run")
	return run != nil && run.Value.String() != ""
}
