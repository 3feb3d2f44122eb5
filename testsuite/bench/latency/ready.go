package latency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/bench/live"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// lookEvery is how often Visibility is asked: what is measured may be that much longer.
const lookEvery = 50 * time.Millisecond

// comeUp measures from the instant at which an instance runs until the proxy is shown as
// Running. The watches of all have looked at about the same time, so the instances begin
// to run one after the other, over a whole poll: one of them has almost all of it to wait.
func (s *scene) comeUp(ctx context.Context) ([]time.Duration, error) {
	first, err := s.add(ctx, slow)
	if err != nil {
		return nil, err
	}
	ids, err := s.watched(ctx, first)
	if err != nil {
		return nil, err
	}
	ran, shown := make([]time.Time, samples), map[string]time.Time{}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return s.await(within, shown) })
	group.Go(func() error {
		for n, id := range ids {
			s.slow.Finish(id)
			ran[n] = time.Now()
			if err := pause(within, busyPoll()/samples); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	took := make([]time.Duration, samples)
	for n := range took {
		took[n] = shown[proxy.WorkflowID(live.Namespace, live.Name(first+n))].Sub(ran[n])
	}
	err = s.fleet.Remove(ctx, first, first+samples)
	return took, errors.Join(err, s.fleet.Await(ctx, s.size, v1.PhaseRunning))
}

// watched waits until a watch has looked at each instance and found that it does not
// run, and returns the IDs.
func (s *scene) watched(ctx context.Context, first int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, doneWithin)
	defer cancel()
	ids := make([]string, samples)
	for n := range ids {
		for !s.slow.looked(ids[n]) {
			p, err := s.fleet.Get(ctx, live.Namespace, live.Name(first+n))
			if err != nil {
				return nil, err
			}
			ids[n] = p.Status.ProviderID
			if err := pause(ctx, lookEvery); err != nil {
				return nil, fmt.Errorf("no watch has looked at instance %q of proxy %d: %w", ids[n], first+n, err)
			}
		}
	}
	return ids, nil
}

// await notes when Visibility shows each of the samples as Running.
func (s *scene) await(ctx context.Context, shown map[string]time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, doneWithin)
	defer cancel()
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND ProxyProvider = '%s' AND ProxyPhase = '%s'",
		slow, v1.PhaseRunning)
	for len(shown) < samples {
		if err := pause(ctx, lookEvery); err != nil {
			return fmt.Errorf("%d of %d proxies are shown as Running: %w", len(shown), samples, err)
		}
		page, err := s.fleet.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err != nil {
			return err
		}
		for _, info := range page.GetExecutions() {
			if id := info.GetExecution().GetWorkflowId(); shown[id].IsZero() {
				shown[id] = time.Now()
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
