// Command bench measures what egressfleet costs, each figure beside a baseline of the
// same run, and says whether the limits hold: `make bench`, or `make bench-NAME` for the
// parts whose name is NAME or begins with NAME-. It prints a table and then JSON lines,
// and fails when a limit does not hold. It may import every room. A new part is a line of
// parts. Start reading at run; docs/performance.md says what the parts measure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/egressfleet/egressfleet/testsuite/bench/cost"
	"github.com/egressfleet/egressfleet/testsuite/bench/create"
	"github.com/egressfleet/egressfleet/testsuite/bench/discovery"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/latency"
	"github.com/egressfleet/egressfleet/testsuite/bench/memory"
	"github.com/egressfleet/egressfleet/testsuite/bench/probes"
	"github.com/egressfleet/egressfleet/testsuite/bench/soak"
	"github.com/egressfleet/egressfleet/testsuite/bench/start"
	"github.com/egressfleet/egressfleet/testsuite/bench/sweep"
	"github.com/egressfleet/egressfleet/testsuite/outcome"
)

// parts are all that there are, in the order in which they run.
func parts() []frame.Part {
	return []frame.Part{
		discovery.Part(), discovery.Refresh(), probes.Part(), probes.Hanging(), sweep.Part(), create.Part(), create.Clients(),
		latency.Part(), start.Part(), cost.Part(), cost.Seen(),
		memory.Part(), memory.Kept(), soak.Part(),
	}
}

// servers are what a part has in a process of its own, by the first argument of it.
var servers = map[string]func(ctx context.Context, args []string, out io.Writer) error{
	discovery.Serve: discovery.ServeMain, memory.Serve: memory.ServeMain,
}

func main() {
	if len(os.Args) > 1 && servers[os.Args[1]] != nil {
		outcome.Main("bench", func(ctx context.Context, out io.Writer) (bool, error) {
			return true, servers[os.Args[1]](ctx, os.Args[2:], out)
		})
	}
	outcome.Main("bench", func(ctx context.Context, out io.Writer) (bool, error) { return run(ctx, out, os.Args[1:]) })
}

// run measures the parts that are named, or all of them, and reports whether their
// limits hold.
func run(ctx context.Context, out io.Writer, args []string) (bool, error) {
	choice, dir, names, err := parse(args)
	if err != nil {
		return false, err
	}
	chosen, err := find(parts(), names)
	if err != nil {
		return false, err
	}
	var all []frame.Result
	var faults []error // of parts; the others are measured all the same
	for _, p := range chosen {
		results, err := measure(ctx, p, choice, dir)
		all, faults = append(all, results...), append(faults, err)
	}
	judged, broken, err := frame.Print(out, all)
	_, _ = fmt.Fprintf(out, "bench: parts=%d figures=%d limits=%d broken=%d\n", len(chosen), len(all), judged, broken)
	return broken == 0, errors.Join(append(faults, err)...)
}

func measure(ctx context.Context, p frame.Part, c frame.Choice, dir string) ([]frame.Result, error) {
	stop, err := profile(dir, p.Name)
	if err != nil {
		return nil, err
	}
	results, err := frame.Measure(ctx, p, c)
	return results, errors.Join(err, stop())
}

// parse reads the arguments. dir is where profiles go, "" for none.
func parse(args []string) (c frame.Choice, dir string, names []string, err error) {
	c.Say = os.Stderr
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&c.Runs, "runs", 0, "runs of each size, in the place of the part's own")
	flags.StringVar(&dir, "profile", "", "the folder for the profiles of processor and memory")
	const usage = "sizes in the place of the part's own, such as 10,100,1000; most limits are about one size"
	flags.Func("sizes", usage, func(text string) error {
		for one := range strings.SplitSeq(text, ",") {
			size, err := strconv.Atoi(one)
			if err != nil || size < 1 {
				return fmt.Errorf("%q is not a size", one)
			}
			c.Sizes = append(c.Sizes, size)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return c, dir, nil, err
	}
	return c, dir, flags.Args(), nil
}

// find returns the parts that are named, in their own order; all of them without a name.
func find(all []frame.Part, names []string) (chosen []frame.Part, err error) {
	found := map[string]bool{}
	known := make([]string, len(all))
	for i, p := range all {
		known[i] = p.Name
		wanted := len(names) == 0
		for _, name := range names {
			if p.Name == name || strings.HasPrefix(p.Name, name+"-") {
				wanted, found[name] = true, true
			}
		}
		if wanted {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		if !found[name] {
			return nil, fmt.Errorf("%q is not a part; there are %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
