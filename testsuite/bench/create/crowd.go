package create

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/egressfleet/egressfleet/testsuite/bench/frame"
)

// crowd are clients that ask for so many things, each for one at a time.
type crowd struct{ things, clients int }

// each returns how long every single one took, in seconds.
func (c crowd) each(ctx context.Context, do func(ctx context.Context, n int) error) ([]float64, error) {
	took := make([]float64, c.things)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.clients)
	for n := range c.things {
		group.Go(func() error {
			begun := time.Now()
			defer func() { took[n] = time.Since(begun).Seconds() }()
			return do(ctx, n)
		})
	}
	return took, group.Wait()
}

// await waits until Visibility finds so many. It looks the less often the more there are:
// each look takes from what is measured, and both sides are looked at alike.
func await(ctx context.Context, temporal client.Client, query string, want int) error {
	every := max(time.Duration(want)*looksApart, lookAtMost)
	ctx, cancel := context.WithTimeout(ctx, doneWithin)
	defer cancel()
	for {
		n, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err == nil && int(n.GetCount()) == want {
			return nil
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return fmt.Errorf("%s: Visibility finds %d, and not %d: %w", query, n.GetCount(), want,
				errors.Join(err, ctx.Err()))
		}
	}
}

const (
	looksApart = 200 * time.Microsecond // for each thing: 0.2 s between two looks at 1,000
	lookAtMost = 50 * time.Millisecond
	doneWithin = 10 * time.Minute
)

// cost is what one kind of thing took.
type cost struct {
	rate float64            // things a second, until the last one is done
	p99  float64            // of what a client waited for, in ms
	cpu  map[string]float64 // processor time of a thing in ms, by whose it is
}

// measured asks for all things of a crowd and waits until a query finds them.
func (s *scene) measured(ctx context.Context, query string, do func(context.Context, int) error) (cost, error) {
	before, err := s.spent()
	if err != nil {
		return cost{}, err
	}
	begun := time.Now()
	took, err := s.crowd.each(ctx, do)
	if err != nil {
		return cost{}, err
	}
	if err := await(ctx, s.fleet.Temporal, query, s.crowd.things); err != nil {
		return cost{}, err
	}
	seconds := time.Since(begun).Seconds()
	after, err := s.spent()
	if err != nil {
		return cost{}, err
	}
	const percentile, milli = 99, 1000
	things := float64(s.crowd.things)
	c := cost{rate: things / seconds, p99: milli * frame.Percentile(took, percentile), cpu: map[string]float64{}}
	for who := range after {
		c.cpu[who] = milli * (after[who] - before[who]).Seconds() / things
	}
	return c, nil
}
