package local

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// startWindow is how long a Create may be under way before its traces count as
// what a crash left: several times the longest one.
const startWindow = time.Minute

// leftoverKind is what a folder without a record is called in an inventory.
const leftoverKind = "folder"

// observe adds the state to a record. The process's own words are read before its
// lock is tried (see look), so that a start at this moment never reads as an end.
func (p *Provider) observe(r record) (*providers.Instance, error) {
	v, err := p.machine.look(p.store.folder(r.Name))
	if err != nil {
		return nil, err
	}
	i := r.instance()
	young := time.Since(r.StartingAt) < startWindow
	switch {
	case v.alive && v.ready:
		i.State, i.IP, i.EgressIP = providers.StateRunning, r.Address.String(), r.Address.String()
	case v.ready:
		i.State, i.Reason = providers.StateStopped, "the proxy process has ended"
	case young:
		i.State, i.Reason = providers.StateProvisioning, "the proxy process is being started"
	case v.alive:
		i.State, i.Reason = providers.StateStopped, "the proxy process never became ready"
	default:
		i.State, i.Reason = providers.StateStopped, "the proxy process was never started"
	}
	return &i, nil
}

// Inventory lists the instances of this installation, and the folders that a crash
// left without a record. It fails where the folder of all of them cannot be read;
// a single instance that cannot be read is named in Omitted.
func (p *Provider) Inventory(ctx context.Context) (providers.Inventory, error) {
	inventory, err := attend(ctx, p.patience, func() (providers.Inventory, error) { return p.inventory(ctx) })
	if err != nil {
		return providers.Inventory{}, p.fail(ctx, providers.OpList, "", err)
	}
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "local list",
		slog.Int("instances", len(inventory.Instances)), slog.Int("leftovers", len(inventory.Leftovers)),
		slog.Int("omitted", len(inventory.Omitted)))
	return inventory, nil
}

func (p *Provider) inventory(ctx context.Context) (providers.Inventory, error) {
	var all providers.Inventory
	if ctx.Err() != nil {
		return all, context.Cause(ctx)
	}
	if there, err := p.store.present(); err != nil || !there {
		return all, err
	}
	names, err := p.store.names()
	if err != nil {
		return all, err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		if err := p.addTo(&all, name); err != nil {
			all.Omitted = append(all.Omitted, formatID(name))
			p.logger(ctx).LogAttrs(ctx, slog.LevelWarn, "local list leaves an instance out",
				slog.String("providerID", formatID(name)), slog.String("error", err.Error()))
		}
	}
	// What vanished in the middle would look like many instances gone one by one.
	return all, p.store.mustBePresent()
}

// addTo puts one folder where it belongs in an inventory.
func (p *Provider) addTo(all *providers.Inventory, name string) error {
	r, err := p.store.read(name)
	if errors.Is(err, errNoRecord) {
		return p.addLeftover(all, name)
	}
	if err != nil {
		return err
	}
	if !r.managed() || r.installation() != p.installation {
		return nil
	}
	i, err := p.observe(r)
	if err == nil {
		all.Instances = append(all.Instances, *i)
	}
	return err
}

// addLeftover takes a folder without a record for a leftover once no Create or
// Delete can still be in the middle of it. Nothing tells whose it was; the folder
// above it is this provider's.
func (p *Provider) addLeftover(all *providers.Inventory, name string) error {
	changed, err := p.store.changed(name)
	if err != nil || changed.IsZero() || time.Since(changed) < startWindow {
		return err
	}
	all.Leftovers = append(all.Leftovers, providers.Leftover{
		ID: formatID(name), Kind: leftoverKind, Installation: p.installation, CreatedAt: changed,
	})
	return nil
}
