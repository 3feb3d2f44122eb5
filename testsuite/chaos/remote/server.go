package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/egressfleet/egressfleet/providers"
)

// Backend is what Handler can serve.
type Backend interface {
	providers.Provider
	providers.Inventorier
}

// Handler serves a backend. A caller that goes away ends the call's context.
func Handler(b Backend) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body) // to its end, or the caller's end is not noticed
		var c call
		if err == nil {
			err = json.Unmarshal(raw, &c)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(serve(r.Context(), b, c)) // a caller that is gone hears nothing
	})
}

func serve(ctx context.Context, b Backend, c call) (r reply) {
	var err error
	switch {
	case c.Op == providers.OpCreate && c.Request != nil:
		r.ID, err = b.Create(ctx, *c.Request)
	case c.Op == providers.OpGet:
		r.Instance, err = b.Get(ctx, c.ID)
	case c.Op == providers.OpDelete:
		err = b.Delete(ctx, c.ID)
	case c.Op == providers.OpList:
		var all providers.Inventory
		all, err = b.Inventory(ctx)
		r.Inventory = &all
	default:
		err = fmt.Errorf("operation: %q is none, or lacks its request", c.Op)
	}
	r.Fault = faultOf(err)
	return r
}
