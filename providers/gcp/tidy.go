package gcp

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// A rule is nobody's instance, so nothing asks for it to be removed. Whoever lists sees
// which ports are in use, and whoever deletes the last instance that nothing is.

// uses reports whether an instance needs this provider's rule.
func (p *Provider) uses(i *computepb.Instance) bool {
	return managed(i.GetLabels()) && i.GetLabels()[markProvider] == asLabel(p.name) && !leaving(i)
}

// inUse are the ports of instances that need the rule, sorted.
func (p *Provider) inUse(all listing[*computepb.Instance]) (ports []int) {
	for _, found := range all.found {
		if !p.uses(found.item) {
			continue
		}
		if port, err := strconv.Atoi(items(found.item)[markPort]); err == nil {
			ports = append(ports, port)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// tidyRule makes the rule open what is in use and nothing else. A list that lacks a zone
// only opens. That it fails is told, and fails nothing: the next list does it again.
func (p *Provider) tidyRule(ctx context.Context, all listing[*computepb.Instance]) {
	if p.set.Firewall != firewallManaged {
		return
	}
	if _, err := p.adjust(ctx, p.inUse(all), len(all.omitted) == 0); err != nil {
		p.untidy(ctx, err)
	}
}

func (p *Provider) untidy(ctx context.Context, err error) {
	p.logger(ctx).LogAttrs(ctx, slog.LevelWarn, "gcp cannot look after its rule of the firewall",
		slog.String("rule", p.ruleName()), slog.String("error", err.Error()))
}

// fewLeft is how many instances are looked at to see whether one was the last: with more
// of them around, the next list tidies up.
const fewLeft = 20

// tidyAfter removes the rule with the last instance.
func (p *Provider) tidyAfter(ctx context.Context, gone place) {
	if p.set.Firewall != firewallManaged {
		return
	}
	filter := fmt.Sprintf("(labels.%s = %q) AND (labels.%s = %q)", providers.MarkInstallation,
		asLabel(p.installation), markProvider, asLabel(p.name))
	all, err := p.api.instances(ctx, filter, fewLeft)
	if err != nil {
		p.untidy(ctx, err)
		return
	}
	if len(all.omitted) > 0 || len(all.found) >= fewLeft || p.needed(all, gone) {
		return
	}
	rule, err := p.ruleOf(ctx)
	if err == nil && rule != nil {
		if _, ours := p.ours(rule); ours {
			err = p.dropRule(ctx)
		}
	}
	if err != nil {
		p.untidy(ctx, err)
	}
}

// needed reports whether another instance than the one that goes needs the rule.
func (p *Provider) needed(all listing[*computepb.Instance], gone place) bool {
	return slices.ContainsFunc(all.found, func(z zoned[*computepb.Instance]) bool {
		return p.uses(z.item) && (place{z.zone, z.item.GetName()}) != gone
	})
}
