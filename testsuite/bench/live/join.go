package live

import (
	"context"
	"errors"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// At is a Temporal server that is there, and a namespace that it has.
type At struct{ Address, Namespace string }

// Join starts a worker in this process, on a server that is there. What it makes stays
// there; Server of what it returns is nil.
func Join(ctx context.Context, at At, o Options) (_ *Fleet, err error) {
	f := &Fleet{stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if f.Temporal, err = dial(ctx, at.Address, at.Namespace); err != nil {
		return nil, err
	}
	f.Client = fleet.New(f.Temporal, Installation)
	if at.Namespace == "" {
		at.Namespace = client.DefaultNamespace
	}
	if err := errors.Join(f.EnsureSearchAttributes(ctx, at.Namespace), f.EnsureInstallation(ctx)); err != nil {
		return nil, err
	}
	f.stop, err = Work(ctx, f.Temporal, o)
	return f, err
}

// dial connects as a worker of production does: what is sent is small, and not compressed.
func dial(ctx context.Context, address, namespace string) (client.Client, error) {
	return client.DialContext(ctx, client.Options{
		HostPort: address, Namespace: namespace, Logger: devserver.Quiet(),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}},
	})
}

// AsInProduction is how much a worker does at once where its memory does not bound it.
func AsInProduction() worker.Options {
	const mostPollers, tasks = 16, 200
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		MaximumNumberOfPollers: mostPollers,
	})
	return worker.Options{
		MaxConcurrentActivityExecutionSize: tasks, MaxConcurrentWorkflowTaskExecutionSize: tasks,
		WorkflowTaskPollerBehavior: pollers, ActivityTaskPollerBehavior: pollers,
	}
}
