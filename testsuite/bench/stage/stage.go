// Package stage is a real Temporal server with many proxies in it, as Visibility shows
// them, without a worker that drives them: for what lists, sweeps and probes a fleet. It
// imports the fleet's client and testsuite/devserver. Start reading at Open.
package stage

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
	"github.com/egressfleet/egressfleet/workflows/installation"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	// Installation is that of the stage.
	Installation = "bench"
	// Queue is where the sweeps of the stage are served, and the proxies that change; nobody
	// serves the others.
	Queue    = "bench"
	unserved = "bench-nobody"

	startAtOnce = 16
	// begunWithin is how long a run takes to begin: it publishes after that.
	begunWithin  = time.Second
	listedWithin = 2 * time.Minute
	lookEvery    = 200 * time.Millisecond
	pageSize     = 1000 // as many as a server lists at once
)

// Stage is one server. The caller closes it.
type Stage struct {
	Temporal client.Client
	Fleet    *fleet.Client
	server   *devserver.Server
}

// Open starts a server that has the proxies, and waits until Visibility shows them all.
func Open(ctx context.Context, proxies []v1.Proxy) (s *Stage, err error) {
	server, err := devserver.Start(ctx)
	if err != nil {
		return nil, err
	}
	s = &Stage{server: server}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	s.Temporal, err = client.DialContext(ctx, client.Options{HostPort: server.Address, Logger: devserver.Quiet()})
	if err != nil {
		return s, err
	}
	s.Fleet = fleet.New(s.Temporal, Installation, fleet.WithTaskQueue(Queue))
	_, err = s.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: installation.WorkflowID(Installation), TaskQueue: unserved,
	}, installation.WorkflowType)
	if err != nil {
		return s, err
	}
	return s, s.start(ctx, proxies)
}

// Close ends the server.
func (s *Stage) Close() error {
	if s.Temporal != nil {
		s.Temporal.Close()
	}
	return s.server.Stop()
}

// start makes a workflow for each proxy, which shows it as its own would.
func (s *Stage) start(ctx context.Context, proxies []v1.Proxy) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(startAtOnce)
	for _, p := range proxies {
		group.Go(func() error {
			_, err := s.Temporal.ExecuteWorkflow(within, client.StartWorkflowOptions{
				ID: workflowID(p), TaskQueue: unserved,
				Memo: map[string]any{proxy.MemoProxy: p}, TypedSearchAttributes: found(p),
			}, proxy.WorkflowType)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.Shown(ctx, len(proxies))
}

// found is what a proxy is found by. Their names are on the wire, and are not exported.
func found(p v1.Proxy) temporal.SearchAttributes {
	keyword := func(name, value string) temporal.SearchAttributeUpdate {
		return temporal.NewSearchAttributeKeyKeyword(name).ValueSet(value)
	}
	return temporal.NewSearchAttributes(
		keyword("ProxyPhase", string(p.Status.Phase)), keyword("ProxyProvider", p.Spec.Provider),
		keyword("ProxyRegion", p.Spec.Placement.Region), keyword("ProxyReason", p.Status.Conditions[0].Reason),
		temporal.NewSearchAttributeKeyBool("ProxyHealthy").ValueSet(true),
		attrChanged.ValueSet(time.Now().Add(begunWithin)))
}

// Listing is the query for the living proxies.
var Listing = fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH '%s'",
	proxy.WorkflowType, proxy.IDPrefix(""))

// Shown waits until Visibility shows so many living proxies.
func (s *Stage) Shown(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeout(ctx, listedWithin)
	defer cancel()
	for {
		n, err := s.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: Listing})
		if err == nil && n.GetCount() == int64(want) {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("listing: Visibility shows %d proxies, and not %d: %w",
				n.GetCount(), want, errors.Join(err, ctx.Err()))
		}
	}
}

// List is the least that a Visibility listing costs: every page is read, and nothing is
// made of it. It returns how many there are.
func (s *Stage) List(ctx context.Context) (n int, err error) {
	var next []byte
	for {
		page, err := s.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: Listing, PageSize: pageSize, NextPageToken: next,
		})
		if err != nil {
			return n, err
		}
		n += len(page.GetExecutions())
		if next = page.GetNextPageToken(); len(next) == 0 {
			return n, nil
		}
	}
}

// Held is the memory that is in use, in bytes, after what is not has been let go of.
func Held() float64 {
	runtime.GC()
	runtime.GC() // what had a finalizer goes with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// Allocated is the memory that was taken since the start of the process, in bytes.
func Allocated() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.TotalAlloc)
}
