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
	var busy busyPort
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
			busy.tried, busy.last = busy.tried+1, err
			if busy.tried != suspicious || !p.takenEverywhere(ctx, at.Port(), &busy) {
				continue
			}
			break
		}
		if err != nil {
			return nil, explainBind(at, err)
		}
		r.Address = address
		return listener, nil
	}
	return nil, p.full(r.Port, busy)
}

// busyPort is what a search has met: candidates that somebody else listens on.
type busyPort struct {
	tried int
	last  error // of the last of them; nil: none was tried
	every bool  // the port is taken outside the range, too
}

// suspicious is after how many busy candidates the search asks whether any is free.
const suspicious = 16

// aside is an address that no instance has with the usual ranges.
var aside = netip.MustParseAddr("127.255.255.254")

// takenEverywhere reports whether a port is taken on an address that is nobody's:
// then something listens on the wildcard, and no candidate can be free.
func (p *Provider) takenEverywhere(ctx context.Context, port uint16, busy *busyPort) bool {
	listener, err := p.machine.listen(ctx, netip.AddrPortFrom(aside, port))
	if err == nil {
		_ = listener.Close()
	}
	busy.every = errors.Is(err, syscall.EADDRINUSE)
	return busy.every
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

// full says what was in the way; the last error names address and port.
func (p *Provider) full(port int, busy busyPort) error {
	switch {
	case p.addresses.single() && busy.last != nil:
		return quota("address %s port %d is taken, and addressRange %s gives all instances this one address: %w",
			p.addresses.prefix.Addr(), port, p.addresses.prefix, busy.last)
	case p.addresses.single():
		return quota("address %s port %d is taken, and addressRange %s gives all instances this one address",
			p.addresses.prefix.Addr(), port, p.addresses.prefix)
	case busy.every:
		return quota("addressRange: %s has no address free for port %d: %d were tried, the last one: %w; "+
			"something may listen on every address (0.0.0.0:%d)", p.addresses.prefix, port, busy.tried, busy.last, port)
	case busy.last != nil:
		return quota("addressRange: %s has no address free for port %d: %d were tried, the last one: %w",
			p.addresses.prefix, port, min(p.addresses.capacity(), maxCandidates), busy.last)
	default:
		return quota("addressRange: %s has no address free for port %d: %d were tried",
			p.addresses.prefix, port, min(p.addresses.capacity(), maxCandidates))
	}
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
