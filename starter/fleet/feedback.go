package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/feedback"
)

// What the workflow of feedback is told and answers, for those who must not know it.
type (
	// FeedbackBatch is what a process of the API has heard, at most MaxFeedback reports.
	FeedbackBatch = feedback.Batch
	// FeedbackReport is what a client said of an instance.
	FeedbackReport = feedback.Report
	// FeedbackPolicy is what reports lead to.
	FeedbackPolicy = feedback.Policy
	// Bans are which sites turn which egress IPs away, and until when.
	Bans = feedback.Snapshot
)

// MaxFeedback is how many reports one batch may carry.
const MaxFeedback = feedback.MaxBatch

// bansWithin is how long a worker has to tell the bans: discovery asks every few seconds.
const bansWithin = 2 * time.Second

// SendFeedback leaves a batch with Temporal, for which no worker is needed. Repeating it
// changes nothing. Errors: ErrUnavailable.
func (c *Client) SendFeedback(ctx context.Context, b FeedbackBatch) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	id := feedback.WorkflowID(c.installation)
	_, err := c.temporal.SignalWithStartWorkflow(ctx, id, feedback.SignalReports, b, client.StartWorkflowOptions{
		ID: id, TaskQueue: c.taskQueue, StaticSummary: "what clients report of proxies",
	}, feedback.WorkflowType, feedback.Input{})
	return translate(err)
}

// Bans returns what is banned, or only the revision where the caller has it. Nothing was
// ever reported: none. It needs a worker. Errors: ErrUnavailable.
func (c *Client) Bans(ctx context.Context, known int64) (bans Bans, err error) {
	ctx, cancel := context.WithTimeout(ctx, bansWithin)
	defer cancel()
	answer, err := c.temporal.QueryWorkflow(ctx, feedback.WorkflowID(c.installation), "", feedback.QueryBans, known)
	switch err = translate(err); {
	case errors.Is(err, ErrNotFound):
		return Bans{}, nil
	case err != nil:
		return Bans{}, err
	default:
		return bans, answer.Get(&bans)
	}
}

// OfProvider returns the living proxies of a provider, as Visibility lists them. One that
// cannot be shown is left out.
func (c *Client) OfProvider(ctx context.Context, provider string) ([]v1.Proxy, error) {
	if !v1.IsName(provider) {
		return nil, &v1.FieldError{Field: "provider", Value: provider, Problem: "is not a DNS label"}
	}
	return c.allShown(ctx, fmt.Sprintf("%s AND ProxyProvider = '%s'", running(""), provider))
}

// HoldInstance is Hold for the instance that a proxy showed when somebody looked at it:
// another one by now, or one that is held already, is a *ConflictError.
func (c *Client) HoldInstance(ctx context.Context, of v1.Proxy, h v1.Hold, requestID string) (v1.Proxy, error) {
	is, err := c.Get(ctx, of.Metadata.Namespace, of.Metadata.Name)
	switch {
	case err != nil:
		return v1.Proxy{}, err
	case is.Status.Held: // whoever held it knows why, and for how long
		return is, &ConflictError{Field: "status.held", Value: "true", Problem: "is the wish of somebody else"}
	case is.Metadata.UID != of.Metadata.UID || !is.Status.InstanceCreatedAt.Equal(of.Status.InstanceCreatedAt):
		return is, &ConflictError{
			Field: "status.instanceCreatedAt", Value: is.Status.InstanceCreatedAt.UTC().Format(time.RFC3339Nano),
			Problem: "is of another instance than the one to be held",
		}
	default:
		return c.Hold(ctx, of.Metadata.Namespace, of.Metadata.Name, h, Request{ID: requestID})
	}
}
