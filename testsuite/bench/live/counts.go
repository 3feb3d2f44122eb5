package live

import (
	"context"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/bench/stage"
)

// counts are the proxies that live, and those of them in a phase, as Visibility has them.
func (f *Fleet) counts(ctx context.Context, phase v1.Phase) (all, inPhase int, err error) {
	if all, err = f.count(ctx, stage.Listing); err != nil {
		return 0, 0, err
	}
	inPhase, err = f.count(ctx, fmt.Sprintf("%s AND ProxyPhase = '%s'", stage.Listing, phase))
	return all, inPhase, err
}

func (f *Fleet) count(ctx context.Context, query string) (int, error) {
	n, err := f.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	return int(n.GetCount()), err
}
