package temporalserver

import (
	"context"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/egressfleet/egressfleet/testsuite/devserver"
)

// Serves returns nil once a server answers what a worker asks first of a namespace, and
// serviceerror.NamespaceNotFound where it does not know it. Each of a server's parts learns
// of a new namespace by itself.
func Serves(ctx context.Context, address, namespace string) error {
	c, err := client.DialContext(ctx, client.Options{
		HostPort: address, Namespace: namespace, Logger: devserver.Quiet(),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{}); err != nil {
		return err
	}
	_, err = c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{
		Namespace: namespace,
	})
	return err
}
