package server

import (
	"cmp"
	"context"
	"strings"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// noReason is what a Proxy's timeline says about a message that gives no reason.
const noReason = "asked for through the API"

// DeleteProxy begins to delete a Proxy, or ends it and leaves what is there.
func (h handlers) DeleteProxy(
	ctx context.Context, r openapi.DeleteProxyRequestObject,
) (openapi.DeleteProxyResponseObject, error) {
	if err := checkNames(r.Namespace, r.Name); err != nil {
		return nil, err
	}
	wish := v1.Deletion{Reason: r.Params.Reason, SkipCleanup: r.Params.SkipCleanup}
	if wish.SkipCleanup && strings.TrimSpace(wish.Reason) == "" {
		return nil, &problem{
			missingParameter, "reason", wish.Reason,
			"is missing: skipCleanup leaves what is at the backend, and needs a reason",
		}
	}
	if grant := access.Of(ctx); wish.SkipCleanup && !grant.May(access.ScopeAdmin) {
		return nil, &problem{
			forbidden, skipCleanup, "true",
			"leaves something behind, for which the token " + grant.Name + " needs the scope admin",
		}
	}
	if err := wish.Validate(); err != nil {
		return nil, err
	}
	if err := h.mayTouch(ctx, r.Namespace, r.Name); err != nil {
		return nil, err
	}
	remove := h.fleet.Delete
	if wish.SkipCleanup {
		remove = h.fleet.LeaveBehind
	}
	deleting, err := remove(ctx, r.Namespace, r.Name, cmp.Or(wish.Reason, noReason))
	if err != nil {
		return nil, err
	}
	return openapi.DeleteProxy202JSONResponse(redacted(deleting)), nil
}

// ReplaceProxy begins to replace the instance of a Proxy.
func (h handlers) ReplaceProxy(
	ctx context.Context, r openapi.ReplaceProxyRequestObject,
) (openapi.ReplaceProxyResponseObject, error) {
	why, id, err := received(ctx, h, target{r.Namespace, r.Name, "replace"}, r.Params.IdempotencyKey, r.Body)
	if err != nil {
		return nil, err
	}
	replacing, err := h.fleet.Replace(ctx, r.Namespace, r.Name, cmp.Or(why.Reason, noReason), id)
	if err != nil {
		return nil, err
	}
	return openapi.ReplaceProxy202JSONResponse(redacted(replacing)), nil
}

// RetryProxy tries again now what a Proxy waits for.
func (h handlers) RetryProxy(
	ctx context.Context, r openapi.RetryProxyRequestObject,
) (openapi.RetryProxyResponseObject, error) {
	why, id, err := received(ctx, h, target{r.Namespace, r.Name, "retry"}, r.Params.IdempotencyKey, r.Body)
	if err != nil {
		return nil, err
	}
	trying, err := h.fleet.Retry(ctx, r.Namespace, r.Name, cmp.Or(why.Reason, noReason), id)
	if err != nil {
		return nil, err
	}
	return openapi.RetryProxy202JSONResponse(redacted(trying)), nil
}

// HoldProxy takes a Proxy out of discovery.
func (h handlers) HoldProxy(
	ctx context.Context, r openapi.HoldProxyRequestObject,
) (openapi.HoldProxyResponseObject, error) {
	hold, id, err := received(ctx, h, target{r.Namespace, r.Name, "hold"}, r.Params.IdempotencyKey, r.Body)
	if err != nil {
		return nil, err
	}
	hold.Reason = cmp.Or(hold.Reason, noReason)
	held, err := h.fleet.Hold(ctx, r.Namespace, r.Name, hold, id)
	if err != nil {
		return nil, err
	}
	return openapi.HoldProxy200JSONResponse(redacted(held)), nil
}

// ResumeProxy gives a held Proxy back to discovery.
func (h handlers) ResumeProxy(
	ctx context.Context, r openapi.ResumeProxyRequestObject,
) (openapi.ResumeProxyResponseObject, error) {
	why, id, err := received(ctx, h, target{r.Namespace, r.Name, "resume"}, r.Params.IdempotencyKey, r.Body)
	if err != nil {
		return nil, err
	}
	resumed, err := h.fleet.Resume(ctx, r.Namespace, r.Name, cmp.Or(why.Reason, noReason), id)
	if err != nil {
		return nil, err
	}
	return openapi.ResumeProxy200JSONResponse(redacted(resumed)), nil
}

// GetTimeline reads what became of a Proxy.
func (h handlers) GetTimeline(
	ctx context.Context, r openapi.GetTimelineRequestObject,
) (openapi.GetTimelineResponseObject, error) {
	if err := checkNames(r.Namespace, r.Name); err != nil {
		return nil, err
	}
	if err := h.mayTouch(ctx, r.Namespace, r.Name); err != nil {
		return nil, err
	}
	events, err := h.fleet.Timeline(ctx, r.Namespace, r.Name)
	if err != nil {
		return nil, err
	}
	items := append([]v1.Event{}, events...) // an empty list is [], never null
	return openapi.GetTimeline200JSONResponse{Items: items}, nil
}

// target is what a message is for.
type target struct{ Namespace, Name, Message string }

// message is the body of one, which may be left out.
type message interface {
	v1.Why | v1.Hold
	Validate() error
}

// received checks a message and names its request: by its key together with what it
// asks for, or by a name of its own.
func received[M message](
	ctx context.Context, h handlers, to target, key *string, body *M,
) (said M, id string, err error) {
	if err = checkKey(key); err == nil {
		err = checkNames(to.Namespace, to.Name)
	}
	if err != nil {
		return said, "", err
	}
	if body != nil {
		said = *body
	}
	if err = said.Validate(); err == nil {
		err = h.mayTouch(ctx, to.Namespace, to.Name)
	}
	if err != nil {
		return said, "", err
	}
	id, err = requestID(key, struct {
		To   target
		Said M
	}{to, said})
	return said, id, err
}
