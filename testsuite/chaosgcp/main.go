// Command chaosgcp lets 200 proxies live on the provider gcp, through a real Temporal
// server and two workers, while the Compute Engine of testsuite/gcefake fails late, has
// no capacity, limits rates, is slow, loses answers and says of what is there that it
// is not. Then it counts, at that server, what was doubled and what is left. It may
// import every room. Start reading at world.live in life.go, then judge.go. `make
// chaos-gcp` runs it; its last line is the outcome.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/outcome"
)

func main() { outcome.Main("gcp", play) }

// play lives one life and prints the outcome as the last line.
func play(ctx context.Context, out io.Writer) (clean bool, err error) {
	w := &world{out: out}
	begun := time.Now()
	e, err := w.run(ctx)
	if err != nil {
		return false, err
	}
	w.say("took %s; trouble: %s", time.Since(begun).Round(time.Second), w.trouble)
	return conclude(out, judge(e), w.trouble.missing()), nil
}

// conclude prints what is wrong with a run, its last line, and reports whether it is
// nothing.
func conclude(out io.Writer, v verdict, missing []string) (clean bool) {
	for _, line := range v.Report {
		_, _ = fmt.Fprintln(out, line)
	}
	for _, name := range missing {
		_, _ = fmt.Fprintln(out, "this run proves too little: there never was", name)
	}
	_, _ = fmt.Fprintf(out, "gcp: proxies=%d duplicates=%d leaked_instances=%d leaked_disks=%d leaked_firewalls=%d "+
		"calls_per_proxy=%.1f\n", v.Proxies, v.Duplicates, v.Instances, v.Disks, v.Firewalls, v.CallsPerProxy)
	return v.clean() && len(missing) == 0
}
