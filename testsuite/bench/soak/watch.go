package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	mebibyte = 1 << 20
	// describeEach is which part of the proxies is asked for the length of its history in
	// one sample; the next one asks others.
	describeEach = 10
	sampleWithin = time.Minute
	// missedMost is for how long a soak goes on without a sample: a machine that others use
	// does not answer now and then.
	missedMost = 5 * time.Minute
)

// watch is what was seen so far.
type watch struct {
	*scene

	all     map[string]*series
	longest float64 // history, in events
	turn    int
}

// run takes a sample now and then, and prints each.
func (w *watch) run(ctx context.Context, lasts time.Duration) error {
	ticks := time.NewTicker(sampleEvery)
	defer ticks.Stop()
	begun := time.Now()
	last := begun
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		at := time.Since(begun)
		err := w.sample(ctx, at)
		switch gone := w.worker.Alive(); {
		case err == nil:
			last = time.Now()
		case gone != nil || time.Since(last) > missedMost || ctx.Err() != nil:
			return errors.Join(err, gone)
		default:
			_, _ = fmt.Fprintf(w.say, "soak %s: no sample: %v; %s\n", at.Round(time.Second), err, w.changes)
		}
		if at >= lasts {
			return nil
		}
	}
}

func (w *watch) sample(ctx context.Context, at time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, sampleWithin)
	defer cancel()
	shown, err := w.fleet.List(ctx, live.Namespace)
	if err != nil {
		return err
	}
	w.changes.see(shown)
	used, err := w.worker.Usage()
	if err != nil {
		return err
	}
	files, err := w.worker.Descriptors()
	if err != nil {
		return err
	}
	stats, err := w.worker.Metrics(ctx, "go_goroutines", "go_memstats_heap_inuse_bytes")
	if err != nil {
		return err
	}
	mean, longest, err := w.histories(ctx, shown)
	if err != nil {
		return err
	}
	w.longest = max(w.longest, longest)
	for name, value := range map[string]float64{
		rss: float64(used.RSS), goroutines: stats[0], descriptors: float64(files), history: mean,
	} {
		if w.all[name] == nil {
			w.all[name] = &series{}
		}
		w.all[name].add(at.Seconds(), value)
	}
	_, _ = fmt.Fprintf(w.say, "soak %s: proxies=%d rss=%.1fMiB heap=%.1fMiB goroutines=%.0f files=%d "+
		"history=%.0f history_max=%.0f cpu=%s %s\n", at.Round(time.Second), len(shown), float64(used.RSS)/mebibyte,
		stats[1]/mebibyte, stats[0], files, mean, longest, used.CPU().Round(time.Second), w.changes)
	return nil
}

// histories are the mean and the longest of some proxies.
func (w *watch) histories(ctx context.Context, shown []v1.Proxy) (mean, longest float64, err error) {
	asked := 0
	for i := w.turn % describeEach; i < len(shown); i += describeEach {
		p := shown[i].Metadata
		d, err := w.fleet.Temporal.DescribeWorkflow(ctx, proxy.WorkflowID(p.Namespace, p.Name), "")
		if err != nil {
			return 0, 0, err
		}
		length := float64(d.RawResponse.GetWorkflowExecutionInfo().GetHistoryLength())
		mean, longest, asked = mean+length, max(longest, length), asked+1
	}
	w.turn++
	return mean / float64(max(asked, 1)), longest, nil
}
