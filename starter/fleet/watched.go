package fleet

import (
	"context"
	"fmt"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

// Running returns the proxies of a provider that show themselves as running, as
// Visibility lists them.
func (c *Client) Running(ctx context.Context, provider string) ([]v1.Proxy, error) {
	if !v1.IsName(provider) {
		return nil, &v1.FieldError{Field: "provider", Value: provider, Problem: "is not a DNS label"}
	}
	return c.allShown(ctx, fmt.Sprintf("%s AND ProxyProvider = '%s' AND ProxyPhase = '%s'",
		running(""), provider, v1.PhaseRunning))
}

// Hint asks whatever proxy has that name now to look for itself, which is harmless for
// one that was made again meanwhile. One that is gone is no error.
func (c *Client) Hint(ctx context.Context, p v1.Proxy, h proxy.Hint) error {
	return c.signal(ctx, p, proxy.SignalHint, h)
}
