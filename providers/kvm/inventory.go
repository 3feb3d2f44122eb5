package kvm

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
)

// leftoverKind is what volumes without a domain are called in an inventory.
const leftoverKind = "volume"

// readAtOnce is how many domains of one host are read at the same time: a guest agent that
// does not answer holds one of them up for seconds.
const readAtOnce = 8

// observe reads one domain.
func (p *Provider) observe(c calls, h *host, dom libvirt.Domain) (*providers.Instance, error) {
	text, err := c.DomainGetXMLDesc(dom, 0)
	if err != nil {
		return nil, err
	}
	d, err := describe(text)
	if err != nil {
		return nil, err
	}
	return p.observed(c, h, dom, d)
}

// observed adds state and address to what a domain says of itself.
func (p *Provider) observed(c calls, h *host, dom libvirt.Domain, d described) (*providers.Instance, error) {
	state, reason, err := c.DomainGetState(dom, 0)
	if err != nil {
		return nil, err
	}
	i := d.marks.instance(formatID(h.Name, dom.Name))
	v := condition{state, reason, d.marks, time.Now()}.judge()
	i.State, i.Reason = v.state, v.reason
	if !v.runs {
		return &i, nil
	}
	at, err := h.finder(d).find(c, dom, func(have []netip.Addr) []netip.Addr { return newest(c, d, have) })
	switch {
	case err != nil:
		return nil, err
	case at.addr.IsValid():
		i.IP = at.addr.String()
	default:
		i.State, i.Reason = providers.StateProvisioning, at.why
	}
	return &i, nil
}

func (m marks) instance(id string) providers.Instance {
	i := providers.Instance{
		ID: id, UID: m.UID, Installation: m.Installation, Owner: m.Owner, SpecMark: m.Spec, CreatedAt: when(m.CreatedAt),
	}
	if m.Managed != providers.MarkManagedYes { // nobody's, whatever else it says
		i.UID, i.Installation, i.Owner, i.SpecMark = "", "", "", ""
	}
	return i
}

func (h *host) finder(d described) finder {
	f := finder{nics: d.nics}
	if allowed, err := netip.ParsePrefix(h.AddressRange); err == nil {
		f.allowed = allowed
	}
	return f
}

// newest asks a network for the leases of a domain. Without an answer all are as good.
func newest(c calls, d described, have []netip.Addr) []netip.Addr {
	for _, n := range d.nics {
		if n.network == "" {
			continue
		}
		network, err := c.NetworkLookupByName(n.network)
		if err != nil {
			continue
		}
		leases, _, err := c.NetworkGetDhcpLeases(network, libvirt.OptString{n.mac}, 1, 0)
		if err == nil {
			have = newestLease(leases, have)
		}
	}
	return have
}

// Inventory lists the instances of this installation on all hosts, and the volumes that have
// lost their domain. A host that cannot be asked is left out and named, unless that is all.
func (p *Provider) Inventory(ctx context.Context) (providers.Inventory, error) {
	inventory, err := p.inventory(ctx)
	if err != nil {
		return providers.Inventory{}, p.fail(ctx, providers.OpList, "", err)
	}
	p.logger(ctx).LogAttrs(ctx, providers.LevelOutcome, "kvm list",
		slog.Int("instances", len(inventory.Instances)), slog.Int("leftovers", len(inventory.Leftovers)),
		slog.Int("omitted", len(inventory.Omitted)))
	return inventory, nil
}

func (p *Provider) inventory(ctx context.Context) (providers.Inventory, error) {
	var all providers.Inventory
	if ctx.Err() != nil {
		return all, context.Cause(ctx)
	}
	parts, errs := each(p.hosts, func(h *host) (providers.Inventory, error) { return p.listHost(ctx, h) })
	answered := false
	for i, h := range p.hosts {
		if errs[i] != nil {
			all.Omitted = append(all.Omitted, location(h.Name))
			continue
		}
		answered = true
		all.Instances = append(all.Instances, parts[i].Instances...)
		all.Leftovers = append(all.Leftovers, parts[i].Leftovers...)
		all.Omitted = append(all.Omitted, parts[i].Omitted...)
	}
	if !answered || ctx.Err() != nil {
		return all, joined(providers.OpList, errs)
	}
	for i, h := range p.hosts {
		if errs[i] != nil {
			p.omits(ctx, location(h.Name), h.Name, errs[i])
		}
	}
	return all, nil
}

func (p *Provider) omits(ctx context.Context, what, host string, err error) {
	p.logger(ctx).LogAttrs(ctx, slog.LevelWarn, "kvm list leaves something out", slog.String("omitted", what),
		slog.String("host", host), slog.String("error", err.Error()))
}

func (p *Provider) listHost(ctx context.Context, h *host) (all providers.Inventory, err error) {
	c := p.calling(ctx, h, h.link.Do)
	doms, _, err := c.ConnectListAllDomains(1, 0)
	if err != nil {
		return all, err
	}
	taken := map[string]bool{}
	for _, dom := range doms {
		taken[dom.Name] = true
	}
	all, err = p.listDomains(ctx, h, doms)
	if err != nil {
		return all, err
	}
	left, err := p.leftovers(c, h, taken)
	if err != nil { // what is left over can wait for the next listing
		p.omits(ctx, "volumes of "+location(h.Name), h.Name, err)
		if linkFailed(err) {
			return all, err
		}
	}
	all.Leftovers = left
	return all, nil
}

// listDomains reads all domains of a host. One that cannot be read is left out and named; a
// host that answers for none is left out itself.
func (p *Provider) listDomains(ctx context.Context, h *host, doms []libvirt.Domain) (
	all providers.Inventory, err error,
) {
	found, errs := make([]*providers.Instance, len(doms)), make([]error, len(doms))
	slots := make(chan struct{}, readAtOnce)
	var reads sync.WaitGroup
	for i, dom := range doms {
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			found[i], errs[i] = p.own(p.calling(about(ctx, dom.Name), h, h.link.Do), h, dom)
		})
	}
	reads.Wait()
	lost := 0
	for i, dom := range doms {
		id := formatID(h.Name, dom.Name)
		switch {
		case errs[i] == nil && found[i] != nil:
			all.Instances = append(all.Instances, *found[i])
		case errs[i] == nil || noDomain(errs[i]): // not ours, or gone since
		default:
			if linkFailed(errs[i]) {
				lost++
			}
			all.Omitted = append(all.Omitted, id)
			p.omits(ctx, id, h.Name, errs[i])
		}
	}
	if lost > 0 && lost == len(doms) {
		return providers.Inventory{}, errs[0]
	}
	return all, nil
}

// own returns a domain as an instance if it is of this installation, and nil if not.
func (p *Provider) own(c calls, h *host, dom libvirt.Domain) (*providers.Instance, error) {
	text, err := c.DomainGetXMLDesc(dom, 0)
	if err != nil {
		return nil, err
	}
	d, err := describe(text)
	if err != nil {
		return nil, err
	}
	if !d.marks.ours(p.installation) || !isLabel(dom.Name) {
		return nil, nil //nolint:nilnil // somebody else's, and that is no error
	}
	return p.observed(c, h, dom, d)
}

// leftovers are the volumes of this installation whose domain is not there, once no create
// can still be on its way to define it.
func (p *Provider) leftovers(c calls, h *host, taken map[string]bool) (left []providers.Leftover, err error) {
	pool, err := c.StoragePoolLookupByName(h.Pool)
	if err != nil {
		return nil, err
	}
	vols, _, err := c.StoragePoolListAllVolumes(pool, 1, 0)
	if err != nil {
		return nil, err
	}
	for _, vol := range vols {
		of, ok := readHolding(vol.Name)
		if !ok || of.installation != p.installation || taken[of.name] {
			continue
		}
		last, err := lastChange(c, of.name, vol, vols)
		if err != nil {
			return left, err
		}
		if !last.IsZero() && time.Since(last) < startWindow {
			continue
		}
		left = append(left, providers.Leftover{
			ID: formatID(h.Name, of.name), Kind: leftoverKind, UID: of.uid, Installation: of.installation,
			Owner: of.owner, CreatedAt: last,
		})
	}
	return left, nil
}

// lastChange is when any volume of a name was written to: a create that is under way may use
// one that an earlier one has left.
func lastChange(c calls, name string, marked libvirt.StorageVol, vols []libvirt.StorageVol) (
	last time.Time, err error,
) {
	for _, vol := range vols {
		if vol.Name != marked.Name && !slices.Contains([]string{overlayName(name), seedName(name)}, vol.Name) {
			continue
		}
		text, err := c.StorageVolGetXMLDesc(vol, 0)
		if noVolume(err) {
			continue
		}
		if err != nil {
			return last, err
		}
		if at := unixTime(changedAt(text)); at.After(last) {
			last = at
		}
	}
	return last, nil
}

// unixTime reads seconds since 1970, with or without a fraction.
func unixTime(text string) time.Time {
	seconds, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || s <= 0 {
		return time.Time{}
	}
	n, err := strconv.ParseInt(fraction, 10, 64)
	if err != nil {
		n = 0
	}
	return time.Unix(s, n).UTC()
}
