package gcp

import (
	"context"
	"fmt"
	"net/http"

	compute "cloud.google.com/go/compute/apiv1"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/api/option"
	transport "google.golang.org/api/transport/http"
)

// idlePerHost keeps the connections of many calls at once: all go to one host.
const idlePerHost = 32

// clients are Google's, over one pool of connections.
type clients struct {
	wire           *http.Transport
	rounds         http.RoundTripper
	options        []option.ClientOption
	instanceClient *compute.InstancesClient
	operationZone  *compute.ZoneOperationsClient
	diskClient     *compute.DisksClient
	zoneClient     *compute.ZonesClient
	regionClient   *compute.RegionsClient
	projectClient  *compute.ProjectsClient
	firewallClient *compute.FirewallsClient
}

// newClients builds what makes calls, and makes none.
func newClients(ctx context.Context, s settings) (clients, error) {
	wire, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		wire = new(http.Transport)
	}
	c := clients{wire: wire.Clone(), options: []option.ClientOption{option.WithLogger(silent())}}
	c.wire.MaxIdleConnsPerHost = idlePerHost
	rounds, err := newRounds(ctx, s, c.wire)
	if err != nil {
		return clients{}, err
	}
	c.rounds = rounds
	if s.Endpoint != "" {
		c.options = append(c.options, option.WithEndpoint(s.Endpoint))
	}
	return c, c.connect(ctx, rounds)
}

// connect makes the clients. Errors are about options, not about the network.
func (c *clients) connect(ctx context.Context, rounds http.RoundTripper) (err error) {
	opts := append(c.options, option.WithHTTPClient(&http.Client{Transport: rounds})) //nolint:gocritic // a copy is meant
	made := func(failed error) {
		if err == nil && failed != nil {
			err = fmt.Errorf("endpoint: %w", failed)
		}
	}
	var e error
	c.instanceClient, e = compute.NewInstancesRESTClient(ctx, opts...)
	made(e)
	c.operationZone, e = compute.NewZoneOperationsRESTClient(ctx, opts...)
	made(e)
	c.diskClient, e = compute.NewDisksRESTClient(ctx, opts...)
	made(e)
	c.zoneClient, e = compute.NewZonesRESTClient(ctx, opts...)
	made(e)
	c.regionClient, e = compute.NewRegionsRESTClient(ctx, opts...)
	made(e)
	c.projectClient, e = compute.NewProjectsRESTClient(ctx, opts...)
	made(e)
	c.firewallClient, e = compute.NewFirewallsRESTClient(ctx, opts...)
	made(e)
	return err
}

func (c *clients) close() { c.wire.CloseIdleConnections() }

// newRounds puts the credential and Google's own tracing over the connections. Its
// tracing begins a trace where there is none, so a call without a caller's span takes
// the way without it. Its own way to credentials keeps a token until it expires, also
// when the file has another key by then, so the header is set here.
func newRounds(ctx context.Context, s settings, wire http.RoundTripper) (http.RoundTripper, error) {
	logged := wired(wire)
	traced, err := transport.NewTransport(ctx, logged, option.WithoutAuthentication(), option.WithLogger(silent()))
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	tokens := newTokens(s, wire)
	return roundTrip(func(r *http.Request) (*http.Response, error) { //nolint:contextcheck // it is the request's
		r, err := tokens.authorize(r)
		if err != nil {
			return nil, err
		}
		if trace.SpanContextFromContext(r.Context()).IsValid() {
			return traced.RoundTrip(r)
		}
		return logged.RoundTrip(r)
	}), nil
}

// roundTrip is an http.RoundTripper that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
