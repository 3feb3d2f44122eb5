package fake

import (
	"context"

	"github.com/egressfleet/egressfleet/providers"
)

var (
	_ providers.Preparer = (*Provider)(nil)
	_ providers.Preparer = (*Faults)(nil)
)

// Unprepare lets creates of new instances lack something, until a Prepare has fetched it.
func (p *Provider) Unprepare(what string) (restore func()) {
	return p.with(func(w *weather) { w.lacking = what }, func(w *weather) { w.lacking = "" })
}

// Prepare fetches what Unprepare took away, in ten parts.
func (p *Provider) Prepare(ctx context.Context, req providers.CreateRequest) error {
	at := target{op: providers.OpPrepare, id: placed(req) + "/" + req.Name}
	_, err := operate(ctx, p, at, func(ctx context.Context) (any, error) {
		for part := range int64(10) {
			providers.Progress(ctx, part+1, 10, "parts")
		}
		return call(ctx, p, request{what: "images.put", location: placed(req)}, func() (any, error) {
			p.lacking = ""
			return nil, nil
		})
	})
	return err
}

// Prepare is the provider's, between the two hooks.
func (f *Faults) Prepare(ctx context.Context, req providers.CreateRequest) error {
	_, err := around(ctx, f, target{op: providers.OpPrepare, id: ID(req.Name)}, func() (any, error) {
		return nil, f.Provider.Prepare(ctx, req)
	})
	return err
}

// prepared fails a create of something new that lacks what it needs.
func (p *Provider) prepared(req providers.CreateRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lacking == "" {
		return nil
	}
	return p.wrap(providers.ErrTransient, providers.OpCreate, placed(req)+"/"+req.Name,
		&providers.NotPreparedError{What: p.lacking})
}
