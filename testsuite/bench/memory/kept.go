package memory

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	together   = 16 // requests at a time
	keptWithin = 5 * time.Minute
	lookEvery  = 100 * time.Millisecond
	perKept    = "per workflow"
	// some are there before anything is measured. What the libraries make once is made then,
	// and what grows with how much is asked at a time and not with how many are kept: the
	// connections, and the pollers that scale up.
	some = 250
)

var wanted = v1.ProxySpec{Provider: stage.Provider, Port: 3128}

// Kept is what one workflow takes that is kept between its tasks.
func Kept() frame.Part {
	return frame.Part{
		Name: "memory-kept", About: "bytes of heap and stack for a proxy that is kept, beside an entity that only waits",
		Sizes: []int{250, 500, 1000}, Open: openKept,
		Figures: []frame.Figure{{Name: perKept, Unit: "B", Must: frame.RatioAtMost(1.5)}},
	}
}

// keeping is a server; every run has workers of its own.
type keeping struct {
	fleet *live.Fleet
	size  int
}

func openKept(ctx context.Context, size int) (frame.Scene, error) {
	f, err := live.Serve(ctx)
	if err != nil {
		return frame.Scene{}, err
	}
	k := &keeping{f, size}
	return frame.Scene{Run: k.run, Close: f.Close}, nil
}

func (k *keeping) run(ctx context.Context, number int) (frame.Samples, error) {
	var s frame.Sample
	// Each run has names of its own.
	first := number * (some + k.size)
	waiting := func(n int) string { return "bare-" + strconv.Itoa(first+n) }
	living := func(n int) string { return proxy.WorkflowID(live.Namespace, live.Name(first+n)) }
	err := frame.Turns(number,
		func() (err error) {
			s.Baseline, err = k.measure(ctx, bare, func(ctx context.Context, from, count int) error {
				return k.wait(ctx, from, count, waiting)
			}, waiting)
			return err
		},
		func() (err error) {
			s.Value, err = k.measure(ctx, ours, func(ctx context.Context, from, count int) error {
				return k.live(ctx, first, from, count)
			}, living)
			return err
		})
	return frame.Samples{perKept: s}, err
}

// measure is what each workflow takes of a new worker: what it holds with them, without
// what it held with some.
func (k *keeping) measure(
	ctx context.Context, kind string, fill func(ctx context.Context, first, count int) error, id func(n int) string,
) (bytes float64, err error) {
	w, err := newKeeper(k.fleet.Server.Address, kind, k.size+some)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	defer func() {
		err = errors.Join(err, each(ctx, some+k.size, func(ctx context.Context, n int) error {
			return k.fleet.Temporal.TerminateWorkflow(ctx, id(n), "", "measured")
		}))
	}()
	if err := fill(ctx, 0, some); err != nil {
		return 0, err
	}
	before, first, err := w.full(ctx, some)
	if err != nil {
		return 0, err
	}
	if err := fill(ctx, some, k.size); err != nil {
		return 0, err
	}
	after, kept, err := w.full(ctx, some+k.size)
	return (after - before) / float64(kept-first), err
}

// wait starts workflows that only wait.
func (k *keeping) wait(ctx context.Context, from, count int, id func(int) string) error {
	return each(ctx, count, func(ctx context.Context, n int) error {
		_, err := k.fleet.Temporal.ExecuteWorkflow(ctx,
			client.StartWorkflowOptions{ID: id(from + n), TaskQueue: bareQueue}, bareType, wanted)
		return err
	})
}

// live makes proxies that run, and that a health round has passed. first is where the names
// of the run begin.
func (k *keeping) live(ctx context.Context, first, from, count int) error {
	if err := put(ctx, k.fleet, first+from, count, wanted); err != nil {
		return err
	}
	if err := k.fleet.Await(ctx, from+count, v1.PhaseRunning); err != nil {
		return err
	}
	shown, err := k.fleet.List(ctx, live.Namespace)
	if err != nil {
		return err
	}
	return each(ctx, len(shown), func(ctx context.Context, n int) error {
		r := proxy.HealthReport{Healthy: true, Reason: v1.ReasonHealthy, EgressIP: shown[n].Status.IP}
		return k.fleet.Report(ctx, shown[n], r)
	})
}

// put makes so many proxies. A worker that is busy is asked again.
func put(ctx context.Context, f *live.Fleet, first, count int, spec v1.ProxySpec) error {
	return each(ctx, count, func(ctx context.Context, n int) error {
		return insist(ctx, func(ctx context.Context) error { return f.Put(ctx, first+n, first+n+1, spec) })
	})
}

// insist asks again as long as nobody answers.
func insist(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, keptWithin)
	defer cancel()
	for {
		err := ask(ctx)
		if !errors.Is(err, fleet.ErrUnavailable) && !errors.Is(err, fleet.ErrNoWorker) {
			return err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return err
		}
	}
}

func each(ctx context.Context, count int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for n := range count {
		group.Go(func() error { return do(ctx, n) })
	}
	return group.Wait()
}

// keeper is a worker in a process of its own.
type keeper struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	out   *bufio.Reader
}

func newKeeper(address, kind string, kept int) (*keeper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{Serve, "-temporal", address, "-kind", kind, "-kept", strconv.Itoa(kept)}
	k := &keeper{cmd: exec.Command(self, args...)} //nolint:gosec,noctx // closed by close
	k.cmd.Stderr = os.Stderr
	if k.input, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	k.out = bufio.NewReader(out)
	return k, k.cmd.Start()
}

// ask returns the bytes that it holds, and how many workflows it keeps.
func (k *keeper) ask() (bytes float64, kept int, err error) {
	if _, err := fmt.Fprintln(k.input); err != nil {
		return 0, 0, err
	}
	line, err := k.out.ReadString('\n')
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(line, &bytes, &kept)
	return bytes, kept, err
}

// full waits until it keeps all of them, or all but a few whose last task failed, and holds
// what it held at the last look. The SDK counts before it keeps one more.
func (k *keeper) full(ctx context.Context, want int) (bytes float64, kept int, err error) {
	ctx, cancel := context.WithTimeout(ctx, keptWithin)
	defer cancel()
	const part = 50 // one of so many may be missing, and half of that of the bytes
	for last := 0.0; ; last = bytes {
		if bytes, kept, err = k.ask(); err != nil {
			return 0, 0, err
		}
		if kept+1 >= want-want/part && math.Abs(bytes-last) <= last/(2*part) {
			return bytes, kept, nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("the worker keeps %d workflows, and not %d: %w", kept, want, ctx.Err())
		}
	}
}

func (k *keeper) close() error { return errors.Join(k.input.Close(), k.cmd.Wait()) }
