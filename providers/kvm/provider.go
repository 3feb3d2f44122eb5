package kvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

// Type is the kind of provider, as the configuration names it.
const Type = "kvm"

var (
	_ providers.Provider     = (*Provider)(nil)
	_ providers.Inventorier  = (*Provider)(nil)
	_ providers.Checker      = (*Provider)(nil)
	_ providers.Profiler     = (*Provider)(nil)
	_ providers.Preparer     = (*Provider)(nil)
	_ providers.Credentialed = (*Provider)(nil)
	_ io.Closer              = (*Provider)(nil)
)

// Provider keeps instances on the hosts of its configuration. It remembers nothing about
// them: two values with one configuration, in one process or in two, see the same.
type Provider struct {
	name, installation string
	settings           settings
	hosts              []*host // in the order of the configuration
	names              names
	images             *image.Fetcher
	bounds             bounds
}

// host is a configured host and the way to it.
type host struct {
	HostConfig
	link link
}

// New returns the provider that is configured under a name. It dials nothing; its errors are
// about the configuration, and name the field and the value. Files that cannot be right are
// refused, so that the provider before them goes on; one that is missing may still come.
func New(_ context.Context, name, installation string, cfg Config) (*Provider, error) {
	p, err := newProvider(name, installation, cfg, newSSHLink)
	if err != nil {
		return nil, err
	}
	for i, h := range p.hosts {
		err := conn.New(h.conn()).CheckFiles()
		if link, ok := errors.AsType[*conn.Error](err); ok && link.Reason == conn.FileInvalid {
			return nil, fmt.Errorf("hosts[%d]: %w", i, err)
		}
	}
	return p, nil
}

func newProvider(name, installation string, cfg Config, dial func(HostConfig) link) (*Provider, error) {
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
	p := &Provider{name: name, installation: installation, settings: set, bounds: defaultBounds(), images: image.New(nil)}
	for _, h := range set.hosts {
		p.hosts = append(p.hosts, &host{HostConfig: h, link: dial(h)})
	}
	return p, nil
}

// CredentialFiles names the keys and the known hosts: a connection is kept for as long as it
// lasts, so a new key takes a new one.
func (p *Provider) CredentialFiles() (files []string) {
	for _, h := range p.hosts {
		files = append(files, h.KeyFile, h.KnownHostsFile)
	}
	return files
}

// Close ends the fetches of images and the connections.
func (p *Provider) Close() error {
	errs := []error{p.images.Close()}
	for _, h := range p.hosts {
		errs = append(errs, h.link.Close())
	}
	return errors.Join(errs...)
}

// host returns a configured host. One that has left the configuration can be asked nothing,
// and nothing there is lost: it is listed again once the host is configured again.
func (p *Provider) host(name string) (*host, error) {
	for _, h := range p.hosts {
		if h.Name == name {
			return h, nil
		}
	}
	return nil, permanent("providerID: host %q is not configured (any more): put it back with retired: true, "+
		"and remove it once nothing is left there", name)
}

// Create makes an instance and starts it; it returns before its address is known. Cut off
// anywhere, it is taken up by the next call.
func (p *Provider) Create(ctx context.Context, req providers.CreateRequest) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.bounds.create, errors.New("the create took longer than it may"))
	defer cancel()
	host, err := p.createOrFollow(ctx, req)
	if err != nil {
		id := req.Name // which host would have it may not be known
		if host != nil {
			id = formatID(host.Name, req.Name)
		}
		return "", p.fail(ctx, providers.OpCreate, id, err)
	}
	id := formatID(host.Name, req.Name)
	p.report(ctx, providers.OpCreate, id, slog.Int("cloudInitBytes", len(req.CloudInit)), slog.Int("attempt", req.Attempt))
	return id, nil
}

// Get reads the domain, and looks for its address.
func (p *Provider) Get(ctx context.Context, id string) (*providers.Instance, error) {
	instance, err := p.get(ctx, id)
	if err != nil {
		return nil, p.fail(ctx, providers.OpGet, id, err)
	}
	p.report(ctx, providers.OpGet, id,
		slog.String("state", string(instance.State)), slog.String("reason", instance.Reason))
	return instance, nil
}

// Delete takes the domain away and then its volumes, and returns when nothing is left.
func (p *Provider) Delete(ctx context.Context, id string) error {
	if err := p.delete(ctx, id); err != nil {
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
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	hostName, name, err := parseID(id)
	if err != nil {
		return nil, err
	}
	h, err := p.host(hostName)
	if err != nil {
		return nil, err
	}
	c := p.calling(about(ctx, name), h, h.link.Do)
	dom, err := c.DomainLookupByName(name)
	if err != nil {
		return nil, err
	}
	return p.observe(c, h, dom)
}

// fail classifies an error and writes the one line about it.
func (p *Provider) fail(ctx context.Context, op, id string, err error) error {
	class := classify(op, err)
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "kvm "+op+" failed", append(place(id),
		slog.String("class", string(class)), slog.String("error", err.Error()))...)
	return providers.Wrap(class, op, p.name, id, err)
}

func (p *Provider) report(ctx context.Context, op, id string, attrs ...slog.Attr) {
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "kvm "+op, append(place(id), attrs...)...)
}

// place is the ID of an instance, its host and its name, as every line about it has them.
func place(id string) []slog.Attr {
	attrs := []slog.Attr{slog.String("providerID", id)}
	if host, name, err := parseID(id); err == nil {
		attrs = append(attrs, slog.String("host", host), slog.String("name", name))
	}
	return attrs
}

// about returns a context whose lines carry the name of an instance.
func about(ctx context.Context, name string) context.Context {
	return providers.WithLogger(ctx, providers.Logger(ctx).With(slog.String("name", name)))
}

func (p *Provider) logger(ctx context.Context) *slog.Logger {
	return providers.Logger(ctx).With(slog.String("provider", p.name))
}
