//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/kubelab"
	"github.com/egressfleet/egressfleet/testsuite/outcome"
)

// envDir names the folder of a run, from the process outside of the namespaces to the one
// inside.
const envDir = "EGRESSFLEET_CLUSTER_DIR"

func main() {
	if os.Getenv(envDir) != "" {
		os.Exit(kubelab.Isolated(func() int {
			outcome.Main("cluster", play)
			return 0
		}))
	}
	if err := outside(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// errFailed is a run whose own words say why.
var errFailed = errors.New("this run failed")

// outside runs everything in namespaces that end with it. A run that fails keeps its
// logs.
func outside() error {
	if err := missing(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return err
	}
	if err := os.Setenv(envDir, dir); err != nil {
		return err
	}
	if code := kubelab.Isolated(nil); code != 0 {
		return fmt.Errorf("%w; the logs stay in %s", errFailed, dir)
	}
	return os.RemoveAll(dir)
}

// play lives one life and prints the outcome as the last line, or runs the command that it
// was given.
func play(ctx context.Context, out io.Writer) (clean bool, err error) {
	if len(os.Args) > 1 {
		return beside(ctx, out, os.Args[1:])
	}
	begun := time.Now()
	w := &world{out: out, begun: begun, dir: os.Getenv(envDir)}
	e, err := w.run(ctx)
	if err != nil {
		return false, err
	}
	w.say("took %s", time.Since(begun).Round(time.Second))
	return conclude(out, e, judge(e)), nil
}

// conclude prints what is wrong with a run and its last line, and reports whether it is
// nothing.
func conclude(out io.Writer, e evidence, v verdict) (clean bool) {
	for _, line := range v.Report {
		_, _ = fmt.Fprintln(out, line)
	}
	_, _ = fmt.Fprintf(out, "cluster: proxies=%d kills=%d lost=%d duplicates=%d adopted=%d\n",
		e.Proxies, e.Kills, v.Lost, v.Duplicates, e.Adopted)
	return len(v.Report) == 0
}
