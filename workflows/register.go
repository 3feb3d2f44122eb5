// Package workflows lists every workflow that this build serves. Start reading at
// Register.
package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/workflows/adoption"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/feedback"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/health"
	"github.com/egressfleet/egressfleet/workflows/installation"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
	"github.com/egressfleet/egressfleet/workflows/providercheck"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// Register is the one list of workflow types.
func Register(w worker.WorkflowRegistry, timing proxy.Timing) {
	entity := &proxy.Workflow{Timing: timing}
	w.RegisterWorkflowWithOptions(entity.Run, workflow.RegisterOptions{Name: proxy.WorkflowType})
	w.RegisterWorkflowWithOptions(drift.Run, workflow.RegisterOptions{Name: drift.WorkflowType})
	w.RegisterWorkflowWithOptions(providercheck.Run, workflow.RegisterOptions{Name: providercheck.WorkflowType})
	w.RegisterWorkflowWithOptions(health.Run, workflow.RegisterOptions{Name: health.WorkflowType})
	w.RegisterWorkflowWithOptions(openproxy.Run, workflow.RegisterOptions{Name: openproxy.WorkflowType})
	w.RegisterWorkflowWithOptions(gc.Run, workflow.RegisterOptions{Name: gc.WorkflowType})
	w.RegisterWorkflowWithOptions(adoption.Run, workflow.RegisterOptions{Name: adoption.WorkflowType})
	w.RegisterWorkflowWithOptions(feedback.Run, workflow.RegisterOptions{Name: feedback.WorkflowType})
	w.RegisterWorkflowWithOptions(installation.Run, workflow.RegisterOptions{Name: installation.WorkflowType})
}
