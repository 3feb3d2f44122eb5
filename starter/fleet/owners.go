package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"

	"github.com/egressfleet/egressfleet/workflows/installation"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// OwnerState is what primary storage says about an owner, and about the life of one UID.
type OwnerState struct {
	Found   bool
	Running bool   // the last workflow of that name
	UID     string // its effective UID; empty while no worker has published it
	Status  string // of that workflow, in Temporal's words
	// Ended says that the life of the UID in question is closed, whatever came after.
	Ended bool
}

// LivingUIDs returns the UIDs of the proxies that Visibility shows as running. It lags.
func (c *Client) LivingUIDs(ctx context.Context) (map[string]bool, error) {
	living := map[string]bool{}
	err := c.each(ctx, running(""), func(info *workflow.WorkflowExecutionInfo) error {
		living[info.GetFirstRunId()] = true
		if p, err := c.shown(info); err == nil {
			living[p.Metadata.UID] = true // an adopted one has another UID
		}
		return nil
	})
	return living, err
}

// Owner reads the last workflow of an owner, and whether the life of a UID is over. It
// is never behind. An owner that is no namespace/name is an error: nobody can be asked.
func (c *Client) Owner(ctx context.Context, owner, uid string) (OwnerState, error) {
	id := proxy.IDPrefix("") + owner
	if _, _, err := proxy.NamesOf(id); err != nil {
		return OwnerState{}, fmt.Errorf("owner mark: %w", err)
	}
	info, err := c.settled(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return OwnerState{}, nil
	}
	if err != nil {
		return OwnerState{}, err
	}
	runs := info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	state := OwnerState{Found: true, Running: runs, UID: c.publishedUID(info), Status: info.GetStatus().String()}
	switch {
	case runs, info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW: // it went on somewhere
	case state.UID == uid || info.GetFirstRunId() == uid:
		state.Ended = true
	default:
		// The name was used again since. The first run of the UID says that it was known;
		// a closed last workflow, that none of that name is open.
		first, err := c.describe(ctx, id, uid)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return OwnerState{}, err
		}
		state.Ended = err == nil && first.GetFirstRunId() == uid
	}
	return state, nil
}

// settled returns the last run of a workflow, and an error where that cannot be told. A
// server finds the last run and then reads it: one that was followed by another in
// between, by continue-as-new or a reset, looks closed. So a closed run is looked for twice.
func (c *Client) settled(ctx context.Context, id string) (*workflow.WorkflowExecutionInfo, error) {
	first, err := c.describe(ctx, id, "")
	if err != nil || first.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return first, err
	}
	again, err := c.describe(ctx, id, "")
	if err != nil || again.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return again, err
	}
	if again.GetExecution().GetRunId() != first.GetExecution().GetRunId() {
		return nil, fmt.Errorf("%s went on with another run while it was asked for", id)
	}
	return again, nil
}

func (c *Client) describe(ctx context.Context, id, run string) (*workflow.WorkflowExecutionInfo, error) {
	d, err := c.temporal.DescribeWorkflow(ctx, id, run)
	if err != nil {
		return nil, translate(err)
	}
	return d.RawResponse.GetWorkflowExecutionInfo(), nil
}

// publishedUID is the effective UID that the workflow itself has published; empty
// while it has not. One that was ended before that never had another than its first run
// ID, unless it was to adopt an instance.
func (c *Client) publishedUID(info *workflow.WorkflowExecutionInfo) string {
	p, err := c.published(info)
	if err != nil {
		return ""
	}
	return p.Metadata.UID
}

// Birth returns when the birth record of this installation was made; zero where there
// is none.
func (c *Client) Birth(ctx context.Context) (time.Time, error) {
	info, err := c.describe(ctx, installation.WorkflowID(c.installation), "")
	switch {
	case errors.Is(err, ErrNotFound):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	case info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return time.Time{}, nil // somebody ended it: when we began is not known any more
	default:
		return info.GetStartTime().AsTime(), nil
	}
}
