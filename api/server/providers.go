package server

import (
	"context"
	"slices"

	"github.com/egressfleet/egressfleet/api/server/openapi"
	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// ListProviders lists the providers of this process, with what the fleet's checks found
// of them last. The list is there also while the fleet is not.
func (h handlers) ListProviders(
	ctx context.Context, _ openapi.ListProvidersRequestObject,
) (openapi.ListProvidersResponseObject, error) {
	list, told := h.told(ctx)
	if !told {
		return nil, &problem{
			kind: providersUnknown, detail: "this process was given no providers file; ask a worker, or set providersFile",
		}
	}
	return openapi.ListProviders200JSONResponse(list), nil
}

// told are the providers with their checks, and whether this process can tell of any.
func (h handlers) told(ctx context.Context) (list v1.ProviderList, told bool) {
	list, told = h.providers()
	if !told {
		return list, false
	}
	state, found := h.checks.last(ctx)
	list.Checks, list.Items = state, slices.Clone(list.Items)
	for i, p := range list.Items {
		if check, checked := found[p.Name]; checked {
			list.Items[i].Check = &check
		}
	}
	return list, true
}
