// Command chaosfleet lets a fleet live an hour in two minutes, while instances vanish,
// the provider and the probes' target go away, workflows are terminated and proxies stop
// serving; the schedules that look after the fleet run all the time. Then it judges what
// they did, and what they should not have done. It may import every room. Start reading
// at world.live in life.go, then judge.go, which says what counts. `make chaos-fleet` runs
// it; its last line is the outcome.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/outcome"
)

func main() { outcome.Main("fleet", play) }

// play lives one life and prints the outcome as the last line.
func play(ctx context.Context, out io.Writer) (clean bool, err error) {
	w := &world{out: out}
	begun := time.Now()
	e, err := w.run(ctx)
	if err != nil {
		return false, err
	}
	v := judge(e)
	w.say("took %s", time.Since(begun).Round(time.Second))
	return conclude(out, e, v), nil
}

// conclude prints what is wrong with a run, its last line, and reports whether it is
// nothing.
func conclude(out io.Writer, e evidence, v verdict) (clean bool) {
	missing := shortcomings(e)
	for _, line := range v.Report {
		_, _ = fmt.Fprintln(out, line)
	}
	for _, fault := range missing {
		_, _ = fmt.Fprintln(out, "this run proves too little:", fault)
	}
	_, _ = fmt.Fprintf(out, "at most drift_p95=%s health_p95=%s, and an orphan is there for %s\n",
		e.Bounds.Drift, e.Bounds.Health, e.Bounds.Orphan)
	_, _ = fmt.Fprintf(out, "fleet: proxies=%d false_deletes=%d false_replacements=%d ",
		len(e.Lives), v.FalseDeletes, v.FalseReplacements)
	_, _ = fmt.Fprintf(out, "drift_p95=%s health_p95=%s orphans_left=%d\n",
		rounded(v.DriftP95), rounded(v.HealthP95), v.OrphansLeft)
	return len(missing) == 0 && v.clean(e.Bounds)
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
