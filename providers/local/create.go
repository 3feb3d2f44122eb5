package local

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// The ports that there are.
const (
	firstPort = 1
	lastPort  = 65535
)

// checkRequest refuses what this provider can never do.
func checkRequest(req providers.CreateRequest) error {
	if !isLabel(req.Name) {
		return permanent("name: %q is not a DNS label", req.Name)
	}
	if req.UID == "" {
		return permanent(`uid: "" must be set: nobody could own the instance`)
	}
	if req.Port < firstPort || req.Port > lastPort {
		return permanent("spec.port: %d is not between %d and %d", req.Port, firstPort, lastPort)
	}
	for key := range req.Labels {
		if providers.IsMark(key) {
			return permanent("labels: %q is kept for the marks", key)
		}
	}
	return nil
}

// create holds the lock of the instance's folder from its first look to its last
// step, so that of many calls for one name one does the work and the others find it.
func (p *Provider) create(ctx context.Context, req providers.CreateRequest) error {
	if err := checkRequest(req); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := p.store.ensure(); err != nil {
		return err
	}
	lock, err := p.store.lockNew(ctx, req.Name)
	if err != nil {
		return err
	}
	defer lock.release()
	r, err := p.store.read(req.Name)
	if errors.Is(err, errNoRecord) {
		return p.createNew(ctx, req)
	}
	if err != nil {
		return err
	}
	if err := r.checkOwner(req); err != nil {
		return err
	}
	return p.resume(ctx, r)
}

// createNew also ends a process whose record somebody removed: it would be a
// second one under this name, and nobody would ever find it.
func (p *Provider) createNew(ctx context.Context, req providers.CreateRequest) error {
	if err := p.machine.stop(ctx, p.store.folder(req.Name)); err != nil {
		return err
	}
	return p.launch(ctx, newRecord(req, time.Now()))
}

// resume takes up a Create that was cut off after it wrote the record.
func (p *Provider) resume(ctx context.Context, r record) error {
	folder := p.store.folder(r.Name)
	v, err := p.machine.look(folder)
	if err != nil {
		return err
	}
	if v.ready {
		return nil // it serves, or it has ended and Get says so
	}
	if v.alive {
		if ready, err := p.machine.awaitReady(ctx, folder); ready || err != nil {
			return err
		}
		if err := p.machine.stop(ctx, folder); err != nil {
			return err
		}
	}
	return p.launch(ctx, r)
}

// launch starts the process of a record. A failed one leaves nothing, unless the
// process lives: then its record must stay, for the next Create or Delete to find.
func (p *Provider) launch(ctx context.Context, r record) error {
	err := p.allocateAndStart(ctx, r)
	if err == nil {
		return nil
	}
	if v, lookErr := p.machine.look(p.store.folder(r.Name)); lookErr == nil && !v.alive {
		if removeErr := p.store.remove(r.Name); removeErr != nil {
			p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "local create left files behind",
				slog.String("providerID", formatID(r.Name)), slog.String("error", removeErr.Error()))
		}
	}
	return err
}

func (p *Provider) allocateAndStart(ctx context.Context, r record) error {
	listener, err := p.allocate(ctx, &r)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	p.logger(ctx).LogAttrs(ctx, providers.LevelDetail, "local process starts",
		slog.String("providerID", formatID(r.Name)), slog.String("endpoint", r.endpoint().String()),
		slog.Int("attempt", r.Attempt))
	return p.machine.start(ctx, p.store.folder(r.Name), listener)
}
