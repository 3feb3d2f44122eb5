package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"github.com/egressfleet/egressfleet/providers"
)

var (
	_ providers.Provider    = (*Provider)(nil)
	_ providers.Inventorier = (*Provider)(nil)
)

// connections is how many idle ones are kept: as many as there are calls at a time.
const connections = 200

// Provider calls a backend behind a Unix socket. It is safe for concurrent use.
type Provider struct {
	name string
	http *http.Client
}

// New returns a provider of that configured name. It dials nothing.
func New(name, socket string) *Provider {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Provider{name: name, http: &http.Client{
		Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: connections},
	}}
}

// Create is the backend's.
func (p *Provider) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	r, err := p.ask(ctx, call{Op: providers.OpCreate, Request: &req})
	return r.ID, err
}

// Get is the backend's.
func (p *Provider) Get(ctx context.Context, id string) (*providers.Instance, error) {
	r, err := p.ask(ctx, call{Op: providers.OpGet, ID: id})
	return r.Instance, err
}

// Delete is the backend's.
func (p *Provider) Delete(ctx context.Context, id string) error {
	_, err := p.ask(ctx, call{Op: providers.OpDelete, ID: id})
	return err
}

// ListByTag is the inventory without what it left out.
func (p *Provider) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	all, err := p.Inventory(ctx)
	return all.Instances, err
}

// Inventory is the backend's.
func (p *Provider) Inventory(ctx context.Context) (providers.Inventory, error) {
	r, err := p.ask(ctx, call{Op: providers.OpList})
	if err != nil || r.Inventory == nil {
		return providers.Inventory{}, err
	}
	return *r.Inventory, nil
}

// ask sends a call. What keeps it from the backend, or the answer from us, is
// Transient: nobody knows whether the backend has acted.
func (p *Provider) ask(ctx context.Context, c call) (r reply, err error) {
	if err = p.exchange(ctx, c, &r); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return reply{}, providers.Wrap(providers.ErrTransient, c.Op, p.name, c.ID, err)
	}
	if r.Fault != nil {
		return reply{}, r.Fault.error()
	}
	return r, nil
}

func (p *Provider) exchange(ctx context.Context, c call, r *reply) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://backend/", bytes.NewReader(raw))
	if err != nil {
		return err
	}
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the backend answered %s", res.Status)
	}
	return json.NewDecoder(res.Body).Decode(r)
}
