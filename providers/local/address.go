package local

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"iter"
	"net/netip"
)

// loopback is all that a local instance may ever listen on.
var loopback = netip.MustParsePrefix("127.0.0.0/8")

// everyoneElse is where other programs of the machine listen and call from. A
// range of several addresses leaves it out, so that an instance's egress is its own.
var everyoneElse = netip.MustParseAddr("127.0.0.1")

// addressRange is what instances take their addresses from.
type addressRange struct {
	prefix netip.Prefix
	first  uint32 // the first usable address, as a number
	size   uint32 // how many are usable
}

func parseRange(cidr string) (addressRange, error) {
	prefix, err := netip.ParsePrefix(cidr)
	switch {
	case err != nil:
		return addressRange{}, errors.New("is not a CIDR such as 127.64.0.0/10")
	case !loopback.Contains(prefix.Addr()) || prefix.Bits() < loopback.Bits():
		return addressRange{}, errors.New("is not within 127.0.0.0/8")
	case prefix != prefix.Masked():
		return addressRange{}, errors.New("is not the start of its range, which is " + prefix.Masked().String())
	}
	r := addressRange{prefix: prefix, first: toNumber(prefix.Addr()), size: 1 << (32 - prefix.Bits())}
	if r.size > 2 { // neither the network's own nor the broadcast address can be bound everywhere
		r.first, r.size = r.first+1, r.size-2
	}
	return r, nil
}

// single reports whether all instances share one address, one per port.
func (r addressRange) single() bool { return r.size == 1 }

// capacity is the number of addresses that instances can have.
func (r addressRange) capacity() int {
	if !r.single() && r.prefix.Contains(everyoneElse) {
		return int(r.size) - 1
	}
	return int(r.size)
}

// maxCandidates bounds one search for a free address, which costs a system call
// each. It covers a /20 completely.
const maxCandidates = 4096

// candidates yields addresses in an order that depends on the name alone, so that
// an instance that is made again tends to get the address it had.
func (r addressRange) candidates(name string) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(name)) // never fails
		start := hash.Sum32() % r.size
		for i := range min(r.size, maxCandidates) {
			at := toAddr(r.first + (start+i)%r.size)
			if at == everyoneElse && !r.single() {
				continue
			}
			if !yield(at) {
				return
			}
		}
	}
}

func toNumber(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func toAddr(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}
