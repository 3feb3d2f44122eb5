package server

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/egressfleet/egressfleet/api/access"
	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
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
	generation, err := expected(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	asked := fleet.Request{IfGeneration: generation}
	deleting, err := remove(ctx, r.Namespace, r.Name, cmp.Or(wish.Reason, noReason), asked)
	if err != nil {
		return nil, unmatched(asked, err)
	}
	return h.settled(ctx, r.Params.Wait, proxyAnswer{http.StatusAccepted, deleting, ""})
}

// ReplaceProxy begins to replace the instance of a Proxy.
func (h handlers) ReplaceProxy(
	ctx context.Context, r openapi.ReplaceProxyRequestObject,
) (openapi.ReplaceProxyResponseObject, error) {
	to := target{r.Namespace, r.Name, "replace"}
	why, asked, err := received(ctx, h, to, named{r.Params.IdempotencyKey, r.Params.IfMatch}, r.Body)
	if err != nil {
		return nil, err
	}
	replacing, err := h.fleet.Replace(ctx, r.Namespace, r.Name, cmp.Or(why.Reason, noReason), asked)
	if err != nil {
		return nil, unmatched(asked, err)
	}
	return h.settled(ctx, r.Params.Wait, proxyAnswer{http.StatusAccepted, replacing, ""})
}

// RetryProxy tries again now what a Proxy waits for.
func (h handlers) RetryProxy(
	ctx context.Context, r openapi.RetryProxyRequestObject,
) (openapi.RetryProxyResponseObject, error) {
	to := target{r.Namespace, r.Name, "retry"}
	why, asked, err := received(ctx, h, to, named{r.Params.IdempotencyKey, r.Params.IfMatch}, r.Body)
	if err != nil {
		return nil, err
	}
	trying, err := h.fleet.Retry(ctx, r.Namespace, r.Name, cmp.Or(why.Reason, noReason), asked)
	if err != nil {
		return nil, unmatched(asked, err)
	}
	return h.settled(ctx, r.Params.Wait, proxyAnswer{http.StatusAccepted, trying, ""})
}

// HoldProxy takes a Proxy out of discovery.
func (h handlers) HoldProxy(
	ctx context.Context, r openapi.HoldProxyRequestObject,
) (openapi.HoldProxyResponseObject, error) {
	to := target{r.Namespace, r.Name, "hold"}
	hold, asked, err := received(ctx, h, to, named{r.Params.IdempotencyKey, r.Params.IfMatch}, r.Body)
	if err != nil {
		return nil, err
	}
	hold.Reason = cmp.Or(hold.Reason, noReason)
	held, err := h.fleet.Hold(ctx, r.Namespace, r.Name, hold, asked)
	if err != nil {
		return nil, unmatched(asked, err)
	}
	return h.settled(ctx, r.Params.Wait, proxyAnswer{http.StatusOK, held, ""})
}

// ResumeProxy gives a held Proxy back to discovery.
func (h handlers) ResumeProxy(
	ctx context.Context, r openapi.ResumeProxyRequestObject,
) (openapi.ResumeProxyResponseObject, error) {
	to := target{r.Namespace, r.Name, "resume"}
	why, asked, err := received(ctx, h, to, named{r.Params.IdempotencyKey, r.Params.IfMatch}, r.Body)
	if err != nil {
		return nil, err
	}
	resumed, err := h.fleet.Resume(ctx, r.Namespace, r.Name, cmp.Or(why.Reason, noReason), asked)
	if err != nil {
		return nil, unmatched(asked, err)
	}
	return h.settled(ctx, r.Params.Wait, proxyAnswer{http.StatusOK, resumed, ""})
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

// named is how a request names itself and what it expects.
type named struct{ key, match *string }

// received checks a message and names its request: by its key together with what it
// asks for, or by a name of its own.
func received[M message](
	ctx context.Context, h handlers, to target, n named, body *M,
) (said M, asked fleet.Request, err error) {
	if err = checkKey(n.key); err == nil {
		err = checkNames(to.Namespace, to.Name)
	}
	if err == nil {
		asked.IfGeneration, err = expected(n.match)
	}
	if err != nil {
		return said, asked, err
	}
	if body != nil {
		said = *body
	}
	if err = said.Validate(); err == nil {
		err = h.mayTouch(ctx, to.Namespace, to.Name)
	}
	if err != nil {
		return said, asked, err
	}
	asked.ID, err = requestID(n.key, struct {
		To   target
		Said M
	}{to, said})
	return said, asked, err
}
