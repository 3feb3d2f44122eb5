package server

import (
	"context"
	"fmt"
	"time"

	"github.com/egressfleet/egressfleet/api/server/openapi"
)

// readyTimeout is short, because those who ask for readiness do not wait long either.
const readyTimeout = 3 * time.Second

// GetHealth says that the process serves.
func (h handlers) GetHealth(
	context.Context, openapi.GetHealthRequestObject,
) (openapi.GetHealthResponseObject, error) {
	return openapi.GetHealth200JSONResponse{Status: openapi.Ok}, nil
}

// GetReadiness says whether Temporal answers and discovery has a list.
func (h handlers) GetReadiness(
	ctx context.Context, _ openapi.GetReadinessRequestObject,
) (openapi.GetReadinessResponseObject, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := h.fleet.Ready(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", &problem{kind: notReady, detail: "Temporal does not answer"}, err)
	}
	if !h.snapshot.loaded() {
		return nil, &problem{kind: notReady, detail: "the list of discovery has not been loaded yet"}
	}
	return openapi.GetReadiness200JSONResponse{Status: openapi.Ok}, nil
}
