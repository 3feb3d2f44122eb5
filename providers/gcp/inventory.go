package gcp

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// insertWindow is how long an insert may be under way before its disk counts as left
// over: several times the longest one.
const insertWindow = 10 * time.Minute

// leftoverKind is what a disk without an instance is called in an inventory.
const leftoverKind = "disk"

// ListByTag returns the instances of Inventory.
func (p *Provider) ListByTag(ctx context.Context) ([]providers.Instance, error) {
	inventory, err := p.Inventory(ctx)
	return inventory.Instances, err
}

// Inventory lists the project's instances of this installation, and disks that are left
// of some. Zones that cannot be reached are left out and named; when none answers, or a
// page is refused, it fails.
func (p *Provider) Inventory(ctx context.Context) (providers.Inventory, error) {
	of := about{op: providers.OpList}
	if ctx.Err() != nil {
		return providers.Inventory{}, p.fail(ctx, of, "", context.Cause(ctx))
	}
	instances, err := p.api.instances(ctx, p.filter(), 0)
	if err != nil {
		return providers.Inventory{}, p.fail(ctx, of, "", err)
	}
	disks, err := p.api.disks(ctx, p.filter())
	if err != nil {
		return providers.Inventory{}, p.fail(ctx, of, "", err)
	}
	all := p.inventory(instances, disks)
	if len(all.Omitted) > 0 {
		p.logger(ctx).LogAttrs(ctx, slog.LevelWarn, "gcp list leaves zones out",
			slog.String("omitted", strings.Join(all.Omitted, ", ")), slog.Int("zones", len(all.Omitted)))
	}
	p.tidyRule(ctx, instances)
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "gcp list",
		slog.Int("instances", len(all.Instances)), slog.Int("leftovers", len(all.Leftovers)),
		slog.Int("omitted", len(all.Omitted)))
	return all, nil
}

// filter lets the API choose what is listed; what it returns is looked at again.
func (p *Provider) filter() string {
	return fmt.Sprintf("(labels.%s = %q) AND (labels.%s = %q)", providers.MarkManaged, providers.MarkManagedYes,
		providers.MarkInstallation, asLabel(p.installation))
}

// inventory puts what was listed where it belongs.
func (p *Provider) inventory(
	instances listing[*computepb.Instance], disks listing[*computepb.Disk],
) (all providers.Inventory) {
	for _, found := range instances.found {
		if p.mine(holder(found.item.GetLabels(), items(found.item))) {
			at := place{found.zone, found.item.GetName()}
			all.Instances = append(all.Instances, view(at, found.item, p.set.Addressing, false))
		}
	}
	for _, found := range disks.found {
		if whose := diskHolder(found.item); p.mine(whose) && p.left(found.item) {
			all.Leftovers = append(all.Leftovers, providers.Leftover{
				ID: place{found.zone, found.item.GetName()}.id(), Kind: leftoverKind, UID: whose.UID,
				Installation: p.installation, Owner: described(found.item)[providers.MarkOwner],
				CreatedAt: timestamp(found.item.GetCreationTimestamp()),
			})
		}
	}
	all.Omitted = append(all.Omitted, instances.omitted...)
	all.Omitted = append(all.Omitted, disks.omitted...)
	slices.Sort(all.Omitted)
	all.Omitted = slices.Compact(all.Omitted)
	return all
}

// mine reports whether a holder is of this installation, whatever its UID: one without
// is listed, too, so that somebody sees it.
func (p *Provider) mine(h providers.Holder) bool {
	return h.Installation == p.installation || h.Installation == asLabel(p.installation)
}

// left reports whether a disk is what a create, or a delete by hand, has left.
func (p *Provider) left(d *computepb.Disk) bool {
	return len(d.GetUsers()) == 0 && old(d.GetCreationTimestamp(), p.now().Add(-insertWindow))
}
