package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// releasesAtOnce is how many proxies are told at a time.
const releasesAtOnce = 8

// Released counts what a release came to.
type Released struct {
	Found int // proxies that wait for another configuration, as Visibility shows them
	Told  int // of them; one that has ended meanwhile is not
}

// Release tells every proxy that waits for another configuration of a provider that
// there is one: each tries again now. A proxy that began to wait within the last moment
// may be missed, since Visibility lags. After an error some are told; repeating is
// harmless. Errors: *v1.FieldError, ErrUnavailable.
func (c *Client) Release(ctx context.Context, provider string) (Released, error) {
	return c.release(ctx, provider, "")
}

// ReleaseUnconfigured is Release for those only that wait because no worker knew the
// provider.
func (c *Client) ReleaseUnconfigured(ctx context.Context, provider string) (Released, error) {
	return c.release(ctx, provider, v1.ReasonProviderNotConfigured)
}

func (c *Client) release(ctx context.Context, provider, reason string) (Released, error) {
	if !v1.IsName(provider) {
		return Released{}, &v1.FieldError{Field: "provider", Value: provider, Problem: "is not a DNS label"}
	}
	var found []string // all of them, before the first is told: who is told leaves the list
	for info, err := range c.find(ctx, proxy.LatchedOn(provider, reason)) {
		if err != nil {
			return Released{}, err
		}
		found = append(found, info.GetExecution().GetWorkflowId())
	}
	hint := proxy.Hint{
		ProviderChanged: true, Reason: fmt.Sprintf("the configuration of provider %q is another one", provider),
	}
	var told atomic.Int64
	var group errgroup.Group
	group.SetLimit(releasesAtOnce)
	for _, id := range found {
		group.Go(func() error {
			err := c.hint(ctx, id, hint)
			if err == nil {
				told.Add(1)
			}
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			return err
		})
	}
	err := group.Wait()
	return Released{Found: len(found), Told: int(told.Load())}, err
}

// hint signals whatever runs under the ID now: a hint is true of every proxy.
func (c *Client) hint(ctx context.Context, workflowID string, h proxy.Hint) error {
	return translate(c.temporal.SignalWorkflow(ctx, workflowID, "", proxy.SignalHint, h))
}
