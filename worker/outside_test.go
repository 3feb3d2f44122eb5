package main_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/egressfleet/egressfleet/internal/config"
	"github.com/egressfleet/egressfleet/testsuite/output"
	worker "github.com/egressfleet/egressfleet/worker"
)

// recording is a Temporal that notes the schedules and the pollers of a process.
type recording struct {
	temporal
	mu        sync.Mutex
	schedules []*workflowservice.CreateScheduleRequest
	queues    map[string]bool // that activities are asked for from
	workflows bool            // somebody asked for workflow tasks
}

func (r *recording) DescribeNamespace(
	context.Context, *workflowservice.DescribeNamespaceRequest,
) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (r *recording) CreateSchedule(
	_ context.Context, in *workflowservice.CreateScheduleRequest,
) (*workflowservice.CreateScheduleResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.schedules = append(r.schedules, in)
	return &workflowservice.CreateScheduleResponse{}, nil
}

func (r *recording) PollActivityTaskQueue(
	ctx context.Context, in *workflowservice.PollActivityTaskQueueRequest,
) (*workflowservice.PollActivityTaskQueueResponse, error) {
	r.mu.Lock()
	r.queues[in.GetTaskQueue().GetName()] = true
	r.mu.Unlock()
	<-ctx.Done()
	return &workflowservice.PollActivityTaskQueueResponse{}, nil
}

func (r *recording) PollWorkflowTaskQueue(
	ctx context.Context, _ *workflowservice.PollWorkflowTaskQueueRequest,
) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	r.mu.Lock()
	r.workflows = true
	r.mu.Unlock()
	<-ctx.Done()
	return &workflowservice.PollWorkflowTaskQueueResponse{}, nil
}

func (r *recording) polled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queues) > 0
}

func TestTheRoleOutsideAsksForItsOwnWorkOnly(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r, server := &recording{queues: map[string]bool{}}, grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, r)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)

	cfg := settings(l.Addr().(*net.TCPAddr).Port)
	cfg.Roles, cfg.MaxConcurrentActivities = []config.Role{config.RoleOutside}, 4
	cfg.ProvidersFile = filepath.Join(t.TempDir(), "of-the-workers.yaml") // which is not here, and not read
	ctx, cancel := context.WithCancel(t.Context())
	out, done := new(output.Log), make(chan error, 1)
	go func() { done <- worker.Run(ctx, cfg, worker.Options{Log: out, Environment: quiet()}) }()
	require.Eventually(t, r.polled, time.Minute, 10*time.Millisecond, "%s", out)
	cancel()
	require.NoError(t, <-done)
	require.Equal(t, map[string]bool{"egressfleet-outside": true}, r.queues)
	require.False(t, r.workflows, "workflows run where the providers are")
	require.Len(t, r.schedules, 1)
	require.Equal(t, "open-proxy-check", r.schedules[0].GetScheduleId())
	action := r.schedules[0].GetSchedule().GetAction().GetStartWorkflow()
	require.Equal(t, "egressfleet", action.GetTaskQueue().GetName())
	require.Equal(t, "OpenProxyCheck", action.GetWorkflowType().GetName())
	require.Contains(t, out.String(), "roles=outside")
	require.NotContains(t, out.String(), "of-the-workers.yaml")
}
