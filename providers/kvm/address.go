package kvm

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

func numbers(state, reason int32) string {
	return "state " + strconv.Itoa(int(state)) + ", reason " + strconv.Itoa(int(reason))
}

// source is one way in which libvirt finds the addresses of a guest.
type source struct {
	name string
	id   libvirt.DomainInterfaceAddressesSource
}

// sources are asked in this order. A lease is of libvirt's own network, and knows when it
// ends. The guest agent knows what the guest has now. The neighbour table of the host is the
// last to be asked: it keeps addresses that nobody has any more.
func sources() []source {
	return []source{
		{"lease", libvirt.DomainInterfaceAddressesSrcLease},
		{"guest agent", libvirt.DomainInterfaceAddressesSrcAgent},
		{"ARP", libvirt.DomainInterfaceAddressesSrcArp},
	}
}

// nic is one network card of a domain.
type nic struct{ mac, network string }

// finder says which addresses may be an instance's.
type finder struct {
	nics    []nic
	allowed netip.Prefix // the zero Prefix allows all
}

// candidates are the addresses that one source names and that can be the instance's: on one
// of its own network cards, in the configured range, and neither loopback nor link-local. IPv4
// only: a guest has an IPv6 address before DHCP has given it the one that it is known by.
func (f finder) candidates(interfaces []libvirt.DomainInterface) (out []netip.Addr) {
	for _, i := range interfaces {
		if !f.owns(i) {
			continue
		}
		for _, a := range i.Addrs {
			addr, err := netip.ParseAddr(a.Addr)
			if err == nil && f.fits(addr) && !slices.Contains(out, addr) {
				out = append(out, addr)
			}
		}
	}
	return out
}

// owns compares MACs: the agent also tells of bridges and tunnels inside the guest. What has
// no MAC is a loopback or a tunnel.
func (f finder) owns(i libvirt.DomainInterface) bool {
	return len(i.Hwaddr) > 0 && slices.ContainsFunc(f.nics, func(n nic) bool {
		return strings.EqualFold(n.mac, i.Hwaddr[0])
	})
}

func (f finder) fits(addr netip.Addr) bool {
	return addr.Is4() && addr.IsGlobalUnicast() && (!f.allowed.IsValid() || f.allowed.Contains(addr))
}

// found is the outcome of a search: an address, or why there is none yet.
type found struct {
	addr netip.Addr
	why  string
}

// find asks the sources. One that fails means "not yet": only a host that does not answer
// at all is an error. Of several addresses of one source that one counts which another
// source has too, since a lease and a neighbour can outlive the address.
func (f finder) find(a domainAPI, dom libvirt.Domain, newest func([]netip.Addr) []netip.Addr) (found, error) {
	var doubtful []netip.Addr
	var why []string
	for _, s := range sources() {
		interfaces, err := a.DomainInterfaceAddresses(dom, uint32(s.id), 0) //nolint:gosec // 0 to 2
		if linkFailed(err) {
			return found{}, err
		}
		if err != nil {
			why = append(why, s.name+": "+sourceError(err))
			continue
		}
		have := f.candidates(interfaces)
		if len(have) > 1 && s.id == libvirt.DomainInterfaceAddressesSrcLease {
			have = newest(have)
		}
		if both := common(doubtful, have); len(both) > 0 {
			have = both
		}
		switch len(have) {
		case 0:
			why = append(why, s.name+": none")
		case 1:
			return found{addr: have[0]}, nil
		default:
			doubtful = append(doubtful, have...)
		}
	}
	if len(doubtful) > 0 {
		return found{addr: doubtful[0]}, nil
	}
	return found{why: "it runs, and has no address yet (" + strings.Join(why, "; ") + ")"}, nil
}

func common(a, b []netip.Addr) (out []netip.Addr) {
	for _, addr := range b {
		if slices.Contains(a, addr) {
			out = append(out, addr)
		}
	}
	return out
}

// sourceError keeps the words of libvirt only: a reason is shown to users.
func sourceError(err error) string {
	if said, ok := errors.AsType[libvirt.Error](err); ok {
		return said.Message
	}
	return "not supported by this libvirt"
}

// newest returns the addresses of the leases that end last: an earlier boot of the guest may
// have had another lease for the same MAC.
func newestLease(leases []libvirt.NetworkDhcpLease, have []netip.Addr) []netip.Addr {
	var last int64
	var out []netip.Addr
	for _, l := range leases {
		addr, err := netip.ParseAddr(l.Ipaddr)
		if err != nil || !slices.Contains(have, addr) || l.Expirytime < last {
			continue
		}
		if l.Expirytime > last {
			last, out = l.Expirytime, nil
		}
		out = append(out, addr)
	}
	if len(out) == 0 {
		return have
	}
	return out
}
