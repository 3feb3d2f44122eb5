package local

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// firstOpenPort is the first that the machine lets everybody bind.
const firstOpenPort = 1024

// allocate finds an address, binds it, and writes the record that claims it, all
// under one lock: no second call can claim it in between.
func (p *Provider) allocate(ctx context.Context, r *record) (*os.File, error) {
	lock, err := p.store.lockAll(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	taken, err := p.taken(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	listener, err := p.bind(ctx, r, taken)
	if err != nil {
		return nil, err
	}
	r.StartingAt = time.Now().UTC()
	if err := p.store.write(*r); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// claim is what one instance keeps from the others: an address, or where there is
// only one, a port of it.
func (p *Provider) claim(at netip.AddrPort) netip.AddrPort {
	if p.addresses.single() {
		return at
	}
	return netip.AddrPortFrom(at.Addr(), 0)
}

// taken counts what all other instances claim, of every installation, and whether
// they run or not.
func (p *Provider) taken(ctx context.Context, except string) (map[netip.AddrPort]int, error) {
	names, err := p.store.names()
	if err != nil {
		return nil, err
	}
	taken := make(map[netip.AddrPort]int, len(names))
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if name == except {
			continue
		}
		// One that cannot be read claims what it listens on, and binding finds that out.
		if r, err := p.store.read(name); err == nil {
			taken[p.claim(r.endpoint())]++
		}
	}
	return taken, nil
}

// bind tries one candidate after the other and puts the address into the record.
func (p *Provider) bind(ctx context.Context, r *record, taken map[netip.AddrPort]int) (*os.File, error) {
	for address := range p.wishes(*r) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		at := netip.AddrPortFrom(address, uint16(r.Port)) //nolint:gosec // checked: 1 to 65535
		if taken[p.claim(at)] > 0 {
			continue
		}
		listener, err := p.machine.listen(ctx, at)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, explainBind(at, err)
		}
		r.Address = address
		return listener, nil
	}
	return nil, p.full(r.Port)
}

// wishes yields the address that the record already had, then the candidates.
func (p *Provider) wishes(r record) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		if p.addresses.prefix.Contains(r.Address) && !yield(r.Address) {
			return
		}
		p.addresses.candidates(r.Name)(yield)
	}
}

func (p *Provider) full(port int) error {
	if p.addresses.single() {
		return quota("address %s port %d is taken, and addressRange %s gives all instances this one address",
			p.addresses.prefix.Addr(), port, p.addresses.prefix)
	}
	return quota("addressRange: %s has no address free for port %d: %d were tried",
		p.addresses.prefix, port, min(p.addresses.capacity(), maxCandidates))
}

// explainBind says what to change where the machine refuses an address for good.
func explainBind(at netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, syscall.EACCES) && at.Port() < firstOpenPort:
		return permanent("spec.port: %d needs a privilege that the worker does not have; use %d or above: %w",
			at.Port(), firstOpenPort, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return permanent("spec.port: %d on %s is not allowed: %w", at.Port(), at.Addr(), err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return permanent("addressRange: this machine has no address %s; set it to %s: %w", at.Addr(), otherRange, err)
	}
	return err
}
