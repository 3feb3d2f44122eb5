package gcp

import (
	"context"
	"net/http"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// Hasten shortens how long Create and Delete look after what they sent.
func Hasten(p providers.Provider, total time.Duration) {
	p.(*Provider).pace = pace{first: time.Millisecond, most: 20 * time.Millisecond, total: total}
}

// Clock sets the provider's own clock.
func Clock(p providers.Provider, now func() time.Time) { p.(*Provider).now = now }

// Watch lets see be called with the context of every later request.
func Watch(t *testing.T, p providers.Provider, see func(context.Context)) {
	t.Helper()
	r := p.(*Provider).api.(*rest)
	before := r.rounds
	r.rounds = roundTrip(func(request *http.Request) (*http.Response, error) {
		see(request.Context())
		return before.RoundTrip(request)
	})
	require.NoError(t, r.connect(t.Context(), r.rounds))
}

// Build is the instance that Create would insert.
func Build(t *testing.T, p providers.Provider, req providers.CreateRequest, zone string) *computepb.Instance {
	t.Helper()
	built, err := p.(*Provider).build(req, zone)
	require.NoError(t, err)
	return built
}

// The limits of user-data.
const (
	MaxUserData       = maxUserData
	MaxBinaryUserData = maxBinaryUserData
)

// Needed are the permissions that a check asks for.
func Needed(p providers.Provider) []string { return p.(*Provider).set.needed() }
