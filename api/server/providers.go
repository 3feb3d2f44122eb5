package server

import (
	"context"

	"github.com/egressfleet/egressfleet/api/server/openapi"
)

// ListProviders lists the providers of this process. It asks nobody.
func (h handlers) ListProviders(
	context.Context, openapi.ListProvidersRequestObject,
) (openapi.ListProvidersResponseObject, error) {
	list, told := h.providers()
	if !told {
		return nil, &problem{
			kind: providersUnknown, detail: "this process was given no providers file; ask a worker, or set providersFile",
		}
	}
	return openapi.ListProviders200JSONResponse(list), nil
}
