package server

import (
	"context"
	"errors"

	"github.com/egressfleet/egressfleet/api/access"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// seen returns a Proxy that the request's token is for. Any other one is not there.
func (h handlers) seen(ctx context.Context, namespace, name string) (v1.Proxy, error) {
	p, err := h.fleet.Get(ctx, namespace, name)
	if err == nil && !access.Of(ctx).Sees(p.Metadata.Namespace, p.Metadata.Labels) {
		return v1.Proxy{}, fleet.ErrNotFound
	}
	return p, err
}

// mayTouch returns nil for a Proxy that the request's token is for. It asks the fleet
// only where the labels of the Proxy decide.
func (h handlers) mayTouch(ctx context.Context, namespace, name string) error {
	if !access.Of(ctx).Labelled() {
		return nil
	}
	_, err := h.seen(ctx, namespace, name)
	return err
}

// mayApply returns nil where the token is for the Proxy as it is, and as it would be.
func (h handlers) mayApply(ctx context.Context, wanted v1.Proxy) error {
	grant := access.Of(ctx)
	if !grant.Labelled() {
		return nil
	}
	if !grant.Sees(wanted.Metadata.Namespace, wanted.Metadata.Labels) {
		return &problem{
			forbidden, "metadata.labels", grant.Labels(), "is what the labels must match for the token " + grant.Name,
		}
	}
	switch is, err := h.fleet.Get(ctx, wanted.Metadata.Namespace, wanted.Metadata.Name); {
	case errors.Is(err, fleet.ErrNotFound):
		return nil
	case err == nil && !grant.Sees(is.Metadata.Namespace, is.Metadata.Labels):
		return &problem{
			forbidden, "metadata.name", wanted.Metadata.Name, "is a Proxy that the token " + grant.Name + " is not for",
		}
	default:
		return err
	}
}
