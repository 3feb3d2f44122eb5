package kvm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers"
)

// room is how much a host has left, in bytes.
type room struct {
	memory, memoryTotal uint64
	pool, poolTotal     uint64
}

// holds says why a guest of that size does not fit; nil when it does. A disk grows as it is
// written to, so what must be free in the pool is the reserve, or the whole disk where that
// is less.
func (s settings) holds(h string, r room, m machine) error {
	disk := s.poolReserve
	if m.disk > 0 {
		disk = min(disk, m.disk)
	}
	switch {
	case r.memory < m.memory+s.memoryReserve:
		return quota("host %s has %d MiB of memory available, and the guest needs %d MiB besides a reserve of %d MiB",
			h, r.memory>>20, m.memory>>20, s.memoryReserve>>20)
	case r.pool < disk:
		return quota("host %s has %d MiB free in its pool, and a create needs %d MiB there", h, r.pool>>20, disk>>20)
	default:
		return nil
	}
}

// option is a host that an instance could be put on.
type option struct {
	host *host
	room room
}

// choose picks a host by free memory, and always the same one for one name while that does
// not change much: each host draws a number from the name, and its chances grow with its free
// memory (weighted rendezvous hashing). So creates at the same moment, which all see the same
// free memory, do not all go to one host.
func choose(name string, options []option) option {
	best, most := option{}, math.Inf(-1)
	for _, o := range options {
		if score := draw(name, o.host.Name, o.room.memory); score > most {
			best, most = o, score
		}
	}
	return best
}

func draw(name, host string, weight uint64) float64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name + "\x00" + host)) // never fails
	mixed := hash.Sum64()
	mixed ^= mixed >> 33
	mixed *= 0xff51afd7ed558ccd // from MurmurHash3: FNV alone leaves the high bits alike for like names
	mixed ^= mixed >> 33
	const steps = 1 << 53 // what a float64 tells apart
	unit := (float64(mixed>>11) + 0.5) / steps
	return -float64(weight+1) / math.Log(unit)
}

// place picks the host of a new instance. Retired hosts get none.
func (p *Provider) place(ctx context.Context, o order) (*host, error) {
	var open []*host
	for _, h := range o.hosts {
		if !h.Retired {
			open = append(open, h)
		}
	}
	if len(open) == 0 {
		return nil, permanent("placement: zone %q and region %q leave retired hosts only",
			o.Placement.Zone, o.Placement.Region)
	}
	rooms, errs := each(open, func(h *host) (room, error) { return p.room(ctx, h, o.machine) })
	var fit []option
	for i, h := range open {
		if errs[i] == nil {
			fit = append(fit, option{h, rooms[i]})
		}
	}
	if len(fit) > 0 {
		return choose(o.Name, fit).host, nil
	}
	return nil, joined(providers.OpCreate, errs)
}

// room returns what room a host has, if that holds the guest. A pool that seems too full is
// read again first: libvirt remembers what was free, and does not notice that somebody has
// made room.
func (p *Provider) room(ctx context.Context, h *host, m machine) (room, error) {
	c := p.calling(ctx, h, h.link.Do)
	r, err := measure(c, h.Pool)
	if err != nil {
		return r, err
	}
	full := p.settings.holds(h.Name, r, m)
	if full == nil {
		return r, nil
	}
	pool, err := c.StoragePoolLookupByName(h.Pool)
	if err != nil {
		return r, err
	}
	if c.StoragePoolRefresh(pool, 0) != nil {
		return r, full // it is not read while a volume is being written
	}
	if r, err = measure(c, h.Pool); err != nil {
		return r, err
	}
	return r, p.settings.holds(h.Name, r, m)
}

// measure reads how much room there is.
func measure(a api, pool string) (room, error) {
	var r room
	var err error
	if r.memory, r.memoryTotal, err = memoryOf(a); err != nil {
		return r, err
	}
	found, err := a.StoragePoolLookupByName(pool)
	if err != nil {
		return r, err
	}
	_, r.poolTotal, _, r.pool, err = a.StoragePoolGetInfo(found)
	return r, err
}

// memoryOf returns what memory is available and how much there is. Free memory alone would
// leave out what the host only caches files in.
func memoryOf(a hostAPI) (available, total uint64, err error) {
	_, count, err := a.NodeGetMemoryStats(0, -1, 0)
	if unsupported(err) {
		return freeOf(a)
	}
	if err != nil {
		return 0, 0, err
	}
	stats, _, err := a.NodeGetMemoryStats(count, -1, 0)
	for _, s := range stats {
		switch s.Field {
		case "total":
			total = s.Value << 10
		case "free", "buffers", "cached":
			available += s.Value << 10
		}
	}
	return available, total, err
}

func freeOf(a hostAPI) (available, total uint64, err error) {
	if available, err = a.NodeGetFreeMemory(); err != nil {
		return 0, 0, err
	}
	_, kib, _, _, _, _, _, _, err := a.NodeGetInfo()
	return available, kib << 10, err
}

// each asks all hosts at once, and returns their answers in the order of the hosts.
func each[T any](hosts []*host, ask func(*host) (T, error)) ([]T, []error) {
	answers, errs := make([]T, len(hosts)), make([]error, len(hosts))
	var asked sync.WaitGroup
	for i, h := range hosts {
		asked.Go(func() { answers[i], errs[i] = ask(h) })
	}
	asked.Wait()
	return answers, errs
}

// joined is one error of many. It has the class of the one that passes soonest: one host that
// is only unreachable may have room.
func joined(op string, errs []error) error {
	class := providers.ErrPermanent
	for _, err := range errs {
		switch classify(op, err) {
		case providers.ErrTransient, providers.ErrNotFound:
			class = providers.ErrTransient
		case providers.ErrQuotaExceeded:
			if class == providers.ErrPermanent {
				class = providers.ErrQuotaExceeded
			}
		case providers.ErrPermanent:
		}
	}
	return &classed{class, errors.Join(errs...)}
}

// whereabouts is a domain that was found under a name.
type whereabouts struct {
	host  *host
	dom   libvirt.Domain
	marks marks
}

// find looks for a name on every host that may hold it. A host that does not answer may hold
// it, too: then nobody can tell, and nothing is made elsewhere. It returns nil when none has it.
func (p *Provider) find(ctx context.Context, hosts []*host, name string) ([]whereabouts, error) {
	answers, errs := each(hosts, func(h *host) (*whereabouts, error) {
		return p.lookup(p.calling(ctx, h, h.link.Do), h, name)
	})
	var all []whereabouts
	for _, w := range answers {
		if w != nil {
			all = append(all, *w)
		}
	}
	for i, err := range errs {
		if err != nil && len(all) == 0 && len(hosts) > 1 {
			return nil, fmt.Errorf("whether host %s holds the name cannot be told, and nothing is made on another one until "+
				"then (a host that will not come back is taken out of the configuration): %w", hosts[i].Name, err)
		}
		if err != nil && len(all) == 0 {
			return nil, err
		}
	}
	return all, nil
}

func (p *Provider) lookup(c calls, h *host, name string) (*whereabouts, error) {
	dom, err := c.DomainLookupByName(name)
	if noDomain(err) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, err
	}
	text, err := c.DomainGetXMLDesc(dom, 0)
	if err != nil {
		return nil, err
	}
	d, err := describe(text)
	if err != nil {
		return nil, err
	}
	return &whereabouts{h, dom, d.marks}, nil
}
