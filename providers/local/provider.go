package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// Type is the kind of provider, as the configuration names it.
const Type = "local"

var (
	_ providers.Provider    = (*Provider)(nil)
	_ providers.Inventorier = (*Provider)(nil)
	_ providers.Checker     = (*Provider)(nil)
	_ providers.Profiler    = (*Provider)(nil)
)

// Provider keeps instances on this machine. It remembers nothing about them: two
// values with one configuration, in one process or in two, see the same.
type Provider struct {
	name         string
	installation string
	executable   string
	addresses    addressRange
	store        store
	machine      machine
	patience     time.Duration // with a disk, once a call's context has ended
}

// New returns the provider that is configured under a name. It touches nothing;
// its errors are about the configuration, and name the field and the value.
func New(_ context.Context, name, installation string, cfg Config) (providers.Provider, error) {
	if !isLabel(name) {
		return nil, fmt.Errorf("name: %q is not a DNS label", name)
	}
	if !isLabel(installation) {
		return nil, fmt.Errorf("installation: %q is not a DNS label", installation)
	}
	set, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	return &Provider{
		name:         name,
		installation: installation,
		executable:   set.executable,
		addresses:    set.addresses,
		store:        newStore(set.dir, name),
		machine:      newSystem(set.executable),
		patience:     hungAfter,
	}, nil
}

// Create writes the record of an instance and starts its process; it returns when
// the proxy serves. Cut off anywhere, it is taken up by the next call.
func (p *Provider) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	id := formatID(req.Name)
	if err := attendOnly(ctx, p.patience, func() error { return p.create(ctx, req) }); err != nil {
		return "", p.fail(ctx, providers.OpCreate, id, err)
	}
	p.report(ctx, providers.OpCreate, id, slog.Int("cloudInitBytes", len(req.CloudInit)))
	return id, nil
}

// Get reads the record, and asks the operating system whether the process lives.
func (p *Provider) Get(ctx context.Context, id string) (*providers.Instance, error) {
	instance, err := attend(ctx, p.patience, func() (*providers.Instance, error) { return p.get(ctx, id) })
	if err != nil {
		return nil, p.fail(ctx, providers.OpGet, id, err)
	}
	p.report(ctx, providers.OpGet, id, slog.String("state", string(instance.State)))
	return instance, nil
}

// Delete ends the process, takes its files away, and returns when nothing is left.
func (p *Provider) Delete(ctx context.Context, id string) error {
	if err := attendOnly(ctx, p.patience, func() error { return p.delete(ctx, id) }); err != nil {
		return p.fail(ctx, providers.OpDelete, id, err)
	}
	p.report(ctx, providers.OpDelete, id)
	return nil
}

// ListByTag returns the instances of Inventory.
func (p *Provider) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	inventory, err := p.Inventory(ctx)
	return inventory.Instances, err
}

func (p *Provider) get(ctx context.Context, id string) (*providers.Instance, error) {
	name, err := parseID(id)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	r, err := p.store.read(name)
	if errors.Is(err, errNoRecord) {
		return nil, notFound("%w", err)
	}
	if err != nil {
		return nil, err
	}
	return p.observe(r)
}

func (p *Provider) delete(ctx context.Context, id string) error {
	name, err := parseID(id)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	lock, err := p.store.lock(ctx, name)
	if missing(err) {
		return p.store.mustBePresent() // gone, unless all is
	}
	if err != nil {
		return err
	}
	defer lock.release()
	if ctx.Err() != nil { // a disk held it up: by now the name may be that of a later instance
		return context.Cause(ctx)
	}
	if err := p.machine.stop(ctx, p.store.folder(name)); err != nil {
		return err
	}
	return p.store.remove(name)
}

// fail classifies an error and writes the one line about it.
func (p *Provider) fail(ctx context.Context, op, id string, err error) error {
	class := classify(err)
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "local "+op+" failed",
		slog.String("providerID", id), slog.String("class", string(class)), slog.String("error", err.Error()))
	return providers.Wrap(class, op, p.name, id, err)
}

func (p *Provider) report(ctx context.Context, op, id string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("providerID", id))
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "local "+op, attrs...)
}

func (p *Provider) logger(ctx context.Context) *slog.Logger {
	return providers.Logger(ctx).With(slog.String("provider", p.name))
}
