package cost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
)

// The naive twin: an entity with a timer and a Get every two minutes, and a timer and a
// probe every minute. Its history is that of a workflow as one writes it at first.
const (
	twinQueue = "naive-twin"
	twinCycle = 2 * time.Minute // of production: one Get and two probes
	twinPoll  = 4 * time.Second // in its place
	mostTwins = 100
	// twinCycles are counted: what the last reading has more than the first one, so that
	// the start and the end of a run are not.
	twinCycles = 5
)

// twin lives for so many cycles. Its activities do nothing: what they cost the server
// does not depend on what they do.
func twin(ctx workflow.Context, cycles int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	probes := workflow.NewWaitGroup(ctx)
	var fault error
	probes.Add(1)
	workflow.Go(ctx, func(ctx workflow.Context) {
		defer probes.Done()
		fault = beat(ctx, "probe", twinPoll/2, 2*cycles)
	})
	err := beat(ctx, "get", twinPoll, cycles)
	probes.Wait(ctx)
	return errors.Join(err, fault)
}

func beat(ctx workflow.Context, what string, every time.Duration, times int) error {
	for range times {
		if err := workflow.Sleep(ctx, every); err != nil {
			return err
		}
		if err := workflow.ExecuteActivity(ctx, what).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// countTwins counts what so many twins cost.
func countTwins(ctx context.Context, temporal client.Client, m *meter, twins int) (source, error) {
	w := twinWorker(temporal)
	if err := w.Start(); err != nil {
		return source{}, err
	}
	defer w.Stop()
	before, err := liveTwins(ctx, temporal, m, twins, 1)
	if err != nil {
		return source{}, err
	}
	longer, err := liveTwins(ctx, temporal, m, twins, 1+twinCycles)
	return source{
		name: "naive twin", counted: longer.plus(before.times(-1)),
		cycles: float64(twins * twinCycles), perDay: float64(twins) * inADay(twinCycle),
	}, err
}

func twinWorker(temporal client.Client) worker.Worker {
	w := worker.New(temporal, twinQueue, worker.Options{})
	w.RegisterWorkflow(twin)
	for _, name := range []string{"get", "probe"} {
		w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: name})
	}
	return w
}

// liveTwins counts what so many twins cost from their start to their end.
func liveTwins(ctx context.Context, temporal client.Client, m *meter, twins, cycles int) (counts, error) {
	before, err := m.settled(ctx)
	if err != nil {
		return counts{}, err
	}
	group, within := errgroup.WithContext(ctx)
	for i := range twins {
		group.Go(func() error {
			run, err := temporal.ExecuteWorkflow(within, client.StartWorkflowOptions{
				ID: fmt.Sprintf("twin-%d-%d", cycles, i), TaskQueue: twinQueue,
			}, twin, cycles)
			if err != nil {
				return err
			}
			return run.Get(within, nil)
		})
	}
	if err := group.Wait(); err != nil {
		return counts{}, err
	}
	after, err := m.settled(ctx)
	return after.since(before).counts, err
}
