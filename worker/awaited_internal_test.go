package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

func TestAFleetThatIsAwaitedIsUnavailable(t *testing.T) {
	t.Parallel()
	f, ctx := newAwaitedFleet(), t.Context()
	for name, ask := range map[string]func() error{
		"apply":    func() error { _, _, err := f.Apply(ctx, v1.Proxy{}, fleet.Request{}); return err },
		"get":      func() error { _, err := f.Get(ctx, "default", "a"); return err },
		"delete":   func() error { _, err := f.Delete(ctx, "default", "a", "", fleet.Request{}); return err },
		"leave":    func() error { _, err := f.LeaveBehind(ctx, "default", "a", "gone", fleet.Request{}); return err },
		"replace":  func() error { _, err := f.Replace(ctx, "default", "a", "", fleet.Request{}); return err },
		"retry":    func() error { _, err := f.Retry(ctx, "default", "a", "", fleet.Request{}); return err },
		"hold":     func() error { _, err := f.Hold(ctx, "default", "a", v1.Hold{}, fleet.Request{}); return err },
		"resume":   func() error { _, err := f.Resume(ctx, "default", "a", "", fleet.Request{}); return err },
		"timeline": func() error { _, err := f.Timeline(ctx, "default", "a"); return err },
		"list":     func() error { _, err := f.List(ctx, "default"); return err },
		"list all": func() error { _, err := f.List(ctx, ""); return err },
		"ready":    func() error { return f.Ready(ctx) },
	} {
		require.ErrorIs(t, ask(), fleet.ErrUnavailable, name)
	}
}

// asked is a Temporal that only says when it was asked.
type asked struct {
	client.Client
	at time.Time
}

func (a *asked) ListWorkflow(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	a.at = time.Now()
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

// Discovery would be without a list for a whole period otherwise.
func TestTheFirstListIsThereWhenTheFleetIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, temporal := newAwaitedFleet(), &asked{}
		time.AfterFunc(3*time.Second, func() { f.arrive(fleet.New(temporal, "test")) })
		due := time.Now().Add(3 * time.Second)
		_, err := f.Follow(t.Context())
		require.NoError(t, err)
		require.Equal(t, due, temporal.at)
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newAwaitedFleet().Follow(ctx)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
}

// A client without Temporal still refuses what cannot be right.
func TestAFleetThatHasArrivedIsAsked(t *testing.T) {
	t.Parallel()
	f, ctx := newAwaitedFleet(), t.Context()
	f.arrive(fleet.New(nil, "test"))
	long := string(make([]byte, v1.MaxReason+1))
	for name, ask := range map[string]func() error{
		"delete":  func() error { _, err := f.Delete(ctx, "default", "a", long, fleet.Request{}); return err },
		"leave":   func() error { _, err := f.LeaveBehind(ctx, "default", "a", "", fleet.Request{}); return err },
		"replace": func() error { _, err := f.Replace(ctx, "default", "a", long, fleet.Request{}); return err },
		"retry":   func() error { _, err := f.Retry(ctx, "default", "a", long, fleet.Request{}); return err },
		"hold":    func() error { _, err := f.Hold(ctx, "default", "a", v1.Hold{For: "x"}, fleet.Request{}); return err },
		"resume":  func() error { _, err := f.Resume(ctx, "default", "a", long, fleet.Request{}); return err },
	} {
		var field *v1.FieldError
		require.ErrorAs(t, ask(), &field, name)
	}
}
