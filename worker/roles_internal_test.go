package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/internal/config"
)

func TestWorkflowsGoOnWithTheCurrentVersion(t *testing.T) {
	t.Parallel()
	require.Equal(t, worker.DeploymentOptions{}, versioned(config.Deployment{}), "off by default")
	require.Equal(t, worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: "fleet", BuildID: "v2"},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}, versioned(config.Deployment{Name: "fleet", BuildID: "v2"}))
}
