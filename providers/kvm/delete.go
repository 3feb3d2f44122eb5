package kvm

import (
	"context"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
)

func (p *Provider) delete(ctx context.Context, id string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	hostName, name, err := parseID(id)
	if err != nil {
		return err
	}
	h, err := p.host(hostName)
	if err != nil {
		return permanent("%w", &providers.LeftBehindError{Place: "host " + hostName})
	}
	release, err := p.names.hold(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	return p.remove(p.calling(about(ctx, name), h, h.link.Do), h, name)
}

// remove takes the domain away, then its volumes, and the one with the marks last. Each step
// minds nothing that is missing, so it goes on wherever it was cut off.
func (p *Provider) remove(c calls, h *host, name string) error {
	w, err := p.lookup(c, h, name)
	if err != nil && !noDomain(err) {
		return err
	}
	pool := h.Pool
	if w != nil {
		if !w.marks.ours(p.installation) {
			return permanent("the domain %q on host %s is not of installation %q, but of %q: it is left alone",
				name, h.Name, p.installation, w.marks.Installation)
		}
		if w.marks.Pool != "" {
			pool = w.marks.Pool
		}
		if err := undefine(c, w.dom); err != nil {
			return err
		}
	}
	found, err := c.StoragePoolLookupByName(pool)
	if err != nil {
		return err
	}
	return p.removeVolumes(c, found, name, w != nil)
}

// undefine ends a domain and what libvirt keeps of it.
func undefine(c calls, dom libvirt.Domain) error {
	if err := c.DomainDestroyFlags(dom, 0); err != nil && !noDomain(err) && !notRunning(err) {
		return err
	}
	flags := undefineAll
	for {
		err := c.DomainUndefineFlags(dom, flags)
		if err == nil || noDomain(err) {
			return nil
		}
		fewer, older := olderFlags(flags, err)
		if !older {
			return err
		}
		flags = fewer
	}
}

// undefineAll is all that libvirt may keep beside a domain, and refuses to leave behind
// unless it is told.
const undefineAll = libvirt.DomainUndefineManagedSave | libvirt.DomainUndefineSnapshotsMetadata |
	libvirt.DomainUndefineNvram | libvirt.DomainUndefineCheckpointsMetadata | libvirt.DomainUndefineTpm

// olderFlags leaves out what an older libvirt does not know: it keeps no such thing.
func olderFlags(flags libvirt.DomainUndefineFlagsValues, err error) (libvirt.DomainUndefineFlagsValues, bool) {
	unknown, ok := unknownFlags(err)
	fewer := flags &^ libvirt.DomainUndefineFlagsValues(unknown) //nolint:gosec // 32 bits were parsed
	return fewer, ok && fewer != flags
}

// removeVolumes removes the volumes of a name. Without a domain only the marks tell whose they
// are, and what has none, or those of another installation, is not ours.
func (p *Provider) removeVolumes(c calls, pool libvirt.StoragePool, name string, owned bool) error {
	marked, owner, err := markedBy(c, pool, name)
	if err != nil {
		return err
	}
	if !owned && owner != p.installation {
		return nil
	}
	for _, volume := range []string{overlayName(name), seedName(name)} {
		vol, err := c.StorageVolLookupByName(pool, volume)
		if noVolume(err) {
			continue
		}
		if err != nil {
			return err
		}
		marked = append([]libvirt.StorageVol{vol}, marked...)
	}
	for _, vol := range marked {
		if err := c.StorageVolDelete(vol, 0); err != nil && !noVolume(err) {
			return err
		}
	}
	return nil
}

// markedBy returns the volumes that have the marks of a name, and the installation in them.
func markedBy(c calls, pool libvirt.StoragePool, name string) (
	all []libvirt.StorageVol, installation string, err error,
) {
	vols, _, err := c.StoragePoolListAllVolumes(pool, 1, 0)
	for _, vol := range vols {
		if h, ok := readHolding(vol.Name); ok && h.name == name {
			all, installation = append(all, vol), h.installation
		}
	}
	return all, installation, err
}
