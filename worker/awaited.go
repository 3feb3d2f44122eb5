package main

import (
	"context"
	"fmt"
	"time"

	"github.com/egressfleet/egressfleet/api/server"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

var errNotConnected = fmt.Errorf("%w: this process has not reached Temporal yet", fleet.ErrUnavailable)

// awaitedFleet is a fleet that the API is given before Temporal is reached. Until it
// is there, every call is answered that the fleet is unavailable.
type awaitedFleet struct {
	there  chan struct{} // closed once client is set
	client *fleet.Client // read only after that
}

var _ server.Fleet = (*awaitedFleet)(nil)

func newAwaitedFleet() *awaitedFleet { return &awaitedFleet{there: make(chan struct{})} }

// arrive is called once.
func (a *awaitedFleet) arrive(client *fleet.Client) {
	a.client = client
	close(a.there)
}

func (a *awaitedFleet) get() (*fleet.Client, error) {
	select {
	case <-a.there:
		return a.client, nil
	default:
		return nil, errNotConnected
	}
}

// ask asks the fleet, if it is there.
func ask[T any](a *awaitedFleet, do func(*fleet.Client) (T, error)) (answer T, err error) {
	f, err := a.get()
	if err != nil {
		return answer, err
	}
	return do(f)
}

func (a *awaitedFleet) Apply(
	ctx context.Context, p v1.Proxy, r fleet.Request,
) (v1.Proxy, bool, error) {
	f, err := a.get()
	if err != nil {
		return v1.Proxy{}, false, err
	}
	return f.Apply(ctx, p, r)
}

func (a *awaitedFleet) Get(ctx context.Context, namespace, name string) (v1.Proxy, error) {
	return ask(a, func(f *fleet.Client) (v1.Proxy, error) { return f.Get(ctx, namespace, name) })
}

func (a *awaitedFleet) Delete(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return ask(a, func(f *fleet.Client) (v1.Proxy, error) { return f.Delete(ctx, namespace, name, reason, r) })
}

func (a *awaitedFleet) LeaveBehind(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return ask(a, func(f *fleet.Client) (v1.Proxy, error) { return f.LeaveBehind(ctx, namespace, name, reason, r) })
}

func (a *awaitedFleet) Replace(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return ask(a, func(f *fleet.Client) (v1.Proxy, error) {
		return f.Replace(ctx, namespace, name, reason, r)
	})
}

func (a *awaitedFleet) Retry(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return ask(a, func(f *fleet.Client) (v1.Proxy, error) {
		return f.Retry(ctx, namespace, name, reason, r)
	})
}

func (a *awaitedFleet) Hold(
	ctx context.Context, namespace, name string, h v1.Hold, r fleet.Request,
) (v1.Proxy, error) {
	return ask(a, func(f *fleet.Client) (v1.Proxy, error) { return f.Hold(ctx, namespace, name, h, r) })
}

func (a *awaitedFleet) Resume(
	ctx context.Context, namespace, name, reason string, r fleet.Request,
) (v1.Proxy, error) {
	return ask(a, func(f *fleet.Client) (v1.Proxy, error) {
		return f.Resume(ctx, namespace, name, reason, r)
	})
}

func (a *awaitedFleet) Timeline(ctx context.Context, namespace, name string) ([]v1.Event, error) {
	return ask(a, func(f *fleet.Client) ([]v1.Event, error) { return f.Timeline(ctx, namespace, name) })
}

func (a *awaitedFleet) List(ctx context.Context, namespace string) ([]v1.Proxy, error) {
	return ask(a, func(f *fleet.Client) ([]v1.Proxy, error) { return f.List(ctx, namespace) })
}

// Follow is what discovery asks. It waits for the fleet, so that the first list is there
// at once and not a period later.
func (a *awaitedFleet) Follow(ctx context.Context) (fleet.Living, error) {
	select {
	case <-a.there:
	case <-ctx.Done():
	}
	return ask(a, func(f *fleet.Client) (fleet.Living, error) { return f.Follow(ctx) })
}

func (a *awaitedFleet) LastChecks(ctx context.Context) (time.Time, map[string]v1.ProviderCheck, error) {
	f, err := a.get()
	if err != nil {
		return time.Time{}, nil, err
	}
	return f.LastChecks(ctx)
}

func (a *awaitedFleet) LastCollection(ctx context.Context) (v1.Collection, error) {
	return ask(a, func(f *fleet.Client) (v1.Collection, error) { return f.LastCollection(ctx) })
}

func (a *awaitedFleet) SendFeedback(ctx context.Context, b fleet.FeedbackBatch) error {
	f, err := a.get()
	if err != nil {
		return err
	}
	return f.SendFeedback(ctx, b)
}

// Bans waits for the fleet as List does.
func (a *awaitedFleet) Bans(ctx context.Context, known int64) (fleet.Bans, error) {
	select {
	case <-a.there:
	case <-ctx.Done():
	}
	return ask(a, func(f *fleet.Client) (fleet.Bans, error) { return f.Bans(ctx, known) })
}

func (a *awaitedFleet) Ready(ctx context.Context) error {
	f, err := a.get()
	if err != nil {
		return err
	}
	return f.Ready(ctx)
}
