package kvm

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// HostConfig is one machine that runs libvirt.
type HostConfig struct {
	// Name is in every ID: a DNS label. Changing it is removing the host and adding another.
	Name string `json:"name"`
	// Address is where its sshd listens: a name or an IP, with a port unless that is 22.
	Address string `json:"address"`
	User    string `json:"user"`
	// KeyFile is a private key without a passphrase, KnownHostsFile has the key of the host.
	KeyFile        string `json:"keyFile"`
	KnownHostsFile string `json:"knownHostsFile"`
	// Transport is how libvirt's socket is reached: "forward" (the default) or "command".
	Transport string `json:"transport"`
	Command   string `json:"command"` // for transport: command; "nc -N -U <socket>" unless set
	Socket    string `json:"socket"`  // /run/libvirt/libvirt-sock unless set
	URI       string `json:"uri"`     // qemu:///system unless set

	// Pool is the storage pool of disks and images: a folder. "default" unless set.
	Pool string `json:"pool"`
	// Network is the libvirt network of the guests, "default" unless set; or Bridge, a bridge
	// of the host that somebody else gives addresses on.
	Network string `json:"network"`
	Bridge  string `json:"bridge"`
	// AddressRange is a CIDR: an address outside of it is never reported.
	AddressRange string `json:"addressRange"`

	// Zone is what spec.placement.zone may say besides the host's name; hosts may share one.
	Zone string `json:"zone"`
	// Region is the group that spec.placement.region may name.
	Region string `json:"region"`
	// Retired hosts get no new instances. Those they have are still listed, checked and deleted.
	Retired bool `json:"retired"`
}

const (
	defaultPool    = "default"
	defaultNetwork = "default"
	sshPort        = 22
)

func resolveHosts(hosts []HostConfig) ([]HostConfig, error) {
	if len(hosts) == 0 {
		return nil, errors.New("hosts: is empty, and nothing could run anywhere")
	}
	out, at := make([]HostConfig, len(hosts)), map[string]int{}
	for i, h := range hosts {
		field := fmt.Sprintf("hosts[%d]", i)
		if !isLabel(h.Name) {
			return nil, fmt.Errorf("%s.name: %q is not a DNS label", field, h.Name)
		}
		if before, twice := at[h.Name]; twice {
			return nil, fmt.Errorf("%s.name: %q is also the name of hosts[%d]", field, h.Name, before)
		}
		at[h.Name] = i
		h, err := h.resolve(field)
		if err != nil {
			return nil, err
		}
		out[i] = h
	}
	for i, h := range out { // or a zone could mean one host or several
		if other, named := at[h.Zone]; named && other != i {
			return nil, fmt.Errorf("hosts[%d].zone: %q is the name of hosts[%d]", i, h.Zone, other)
		}
	}
	return out, nil
}

// resolve checks one host. What becomes a word of libvirt's XML or of a path is a safe name.
func (h HostConfig) resolve(field string) (HostConfig, error) {
	if h.Network != "" && h.Bridge != "" {
		return h, fmt.Errorf("%s: network %q and bridge %q exclude each other", field, h.Network, h.Bridge)
	}
	if h.Bridge == "" {
		h.Network = cmp.Or(h.Network, defaultNetwork)
	}
	h.Pool = cmp.Or(h.Pool, defaultPool)
	h.Address = withPort(h.Address)
	for _, name := range []struct{ key, value string }{
		{"pool", h.Pool}, {"network", cmp.Or(h.Network, defaultNetwork)}, {"bridge", cmp.Or(h.Bridge, "unset")},
	} {
		if err := providers.CheckFileName(field+"."+name.key, name.value); err != nil {
			return h, err
		}
	}
	for _, place := range []struct{ key, value string }{{"zone", h.Zone}, {"region", h.Region}} {
		if place.value != "" && !isLabel(place.value) {
			return h, fmt.Errorf("%s.%s: %q is not a DNS label", field, place.key, place.value)
		}
	}
	if _, err := netip.ParsePrefix(h.AddressRange); h.AddressRange != "" && err != nil {
		return h, fmt.Errorf("%s.addressRange: %q is not a CIDR such as 192.0.2.0/24", field, h.AddressRange)
	}
	if err := h.conn().Validate(); err != nil {
		return h, fmt.Errorf("%s.%w", field, err)
	}
	return h, nil
}

func withPort(address string) string {
	if address == "" {
		return ""
	}
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(address, strconv.Itoa(sshPort))
}

// conn is how the host is reached.
func (h HostConfig) conn() conn.Config {
	return conn.Config{
		Host: h.Name, Address: h.Address, User: h.User, KeyFile: h.KeyFile, KnownHostsFile: h.KnownHostsFile,
		Bridge: conn.Bridge(h.Transport), Command: h.Command, Socket: h.Socket, URI: h.URI,
	}
}
