package kvm

import (
	"io"

	"github.com/digitalocean/go-libvirt"
)

// calls is the decorator over the seam: every method is one call on the link, with a bound,
// a span and a line of its own, and an error that names it. What it does around a call is
// made by Provider.calling, for one operation on one host.
type calls struct {
	around func(rpc string, use func(api) error) error
}

// result makes a call that has a result. The channel hands it over even when the caller has
// left: nothing of the caller's is written to.
func result[T any](c calls, rpc string, use func(api) (T, error)) (T, error) {
	results := make(chan T, 1)
	err := c.around(rpc, func(a api) error {
		value, err := use(a)
		if err == nil {
			results <- value
		}
		return err
	})
	var value T
	if err == nil {
		value = <-results
	}
	return value, err
}

// The methods of api, in its order.

type domains struct {
	all   []libvirt.Domain
	count uint32
}

func (c calls) ConnectListAllDomains(need int32, flags libvirt.ConnectListAllDomainsFlags) (
	[]libvirt.Domain, uint32, error,
) {
	d, err := result(c, "ConnectListAllDomains", func(a api) (d domains, err error) {
		d.all, d.count, err = a.ConnectListAllDomains(need, flags)
		return d, err
	})
	return d.all, d.count, err
}

func (c calls) DomainLookupByName(name string) (libvirt.Domain, error) {
	return result(c, "DomainLookupByName", func(a api) (libvirt.Domain, error) { return a.DomainLookupByName(name) })
}

func (c calls) DomainGetXMLDesc(dom libvirt.Domain, flags libvirt.DomainXMLFlags) (string, error) {
	return result(c, "DomainGetXMLDesc", func(a api) (string, error) { return a.DomainGetXMLDesc(dom, flags) })
}

func (c calls) DomainGetState(dom libvirt.Domain, flags uint32) (state, reason int32, err error) {
	both, err := result(c, "DomainGetState", func(a api) (both [2]int32, err error) {
		both[0], both[1], err = a.DomainGetState(dom, flags)
		return both, err
	})
	return both[0], both[1], err
}

func (c calls) DomainDefineXMLFlags(xml string, flags libvirt.DomainDefineFlags) (libvirt.Domain, error) {
	return result(c, "DomainDefineXMLFlags", func(a api) (libvirt.Domain, error) {
		return a.DomainDefineXMLFlags(xml, flags)
	})
}

func (c calls) DomainCreate(dom libvirt.Domain) error {
	return c.around(rpcStart, func(a api) error { return a.DomainCreate(dom) })
}

func (c calls) DomainSetMetadata( //nolint:revive // libvirt's signature
	dom libvirt.Domain, kind int32, metadata, key, uri libvirt.OptString, flags libvirt.DomainModificationImpact,
) error {
	return c.around("DomainSetMetadata", func(a api) error {
		return a.DomainSetMetadata(dom, kind, metadata, key, uri, flags)
	})
}

func (c calls) DomainDestroyFlags(dom libvirt.Domain, flags libvirt.DomainDestroyFlagsValues) error {
	return c.around("DomainDestroyFlags", func(a api) error { return a.DomainDestroyFlags(dom, flags) })
}

func (c calls) DomainUndefineFlags(dom libvirt.Domain, flags libvirt.DomainUndefineFlagsValues) error {
	return c.around("DomainUndefineFlags", func(a api) error { return a.DomainUndefineFlags(dom, flags) })
}

func (c calls) DomainInterfaceAddresses(dom libvirt.Domain, source, flags uint32) ([]libvirt.DomainInterface, error) {
	return result(c, "DomainInterfaceAddresses", func(a api) ([]libvirt.DomainInterface, error) {
		return a.DomainInterfaceAddresses(dom, source, flags)
	})
}

func (c calls) StoragePoolLookupByName(name string) (libvirt.StoragePool, error) {
	return result(c, "StoragePoolLookupByName", func(a api) (libvirt.StoragePool, error) {
		return a.StoragePoolLookupByName(name)
	})
}

type poolInfo struct {
	state                           uint8
	capacity, allocation, available uint64
}

func (c calls) StoragePoolGetInfo(pool libvirt.StoragePool) (
	state uint8, capacity, allocation, available uint64, err error,
) {
	i, err := result(c, "StoragePoolGetInfo", func(a api) (i poolInfo, err error) {
		i.state, i.capacity, i.allocation, i.available, err = a.StoragePoolGetInfo(pool)
		return i, err
	})
	return i.state, i.capacity, i.allocation, i.available, err
}

func (c calls) StoragePoolRefresh(pool libvirt.StoragePool, flags uint32) error {
	return c.around("StoragePoolRefresh", func(a api) error { return a.StoragePoolRefresh(pool, flags) })
}

type volumes struct {
	all   []libvirt.StorageVol
	count uint32
}

func (c calls) StoragePoolListAllVolumes(pool libvirt.StoragePool, need int32, flags uint32) (
	[]libvirt.StorageVol, uint32, error,
) {
	v, err := result(c, "StoragePoolListAllVolumes", func(a api) (v volumes, err error) {
		v.all, v.count, err = a.StoragePoolListAllVolumes(pool, need, flags)
		return v, err
	})
	return v.all, v.count, err
}

func (c calls) StorageVolLookupByName(pool libvirt.StoragePool, name string) (libvirt.StorageVol, error) {
	return result(c, "StorageVolLookupByName", func(a api) (libvirt.StorageVol, error) {
		return a.StorageVolLookupByName(pool, name)
	})
}

func (c calls) StorageVolCreateXML(pool libvirt.StoragePool, xml string, flags libvirt.StorageVolCreateFlags) (
	libvirt.StorageVol, error,
) {
	return result(c, "StorageVolCreateXML", func(a api) (libvirt.StorageVol, error) {
		return a.StorageVolCreateXML(pool, xml, flags)
	})
}

func (c calls) StorageVolDelete(vol libvirt.StorageVol, flags libvirt.StorageVolDeleteFlags) error {
	return c.around("StorageVolDelete", func(a api) error { return a.StorageVolDelete(vol, flags) })
}

type volumeInfo struct {
	kind                 int8
	capacity, allocation uint64
}

func (c calls) StorageVolGetInfoFlags(vol libvirt.StorageVol, flags uint32) (
	kind int8, capacity, allocation uint64, err error,
) {
	i, err := result(c, "StorageVolGetInfoFlags", func(a api) (i volumeInfo, err error) {
		i.kind, i.capacity, i.allocation, err = a.StorageVolGetInfoFlags(vol, flags)
		return i, err
	})
	return i.kind, i.capacity, i.allocation, err
}

func (c calls) StorageVolGetXMLDesc(vol libvirt.StorageVol, flags uint32) (string, error) {
	return result(c, "StorageVolGetXMLDesc", func(a api) (string, error) { return a.StorageVolGetXMLDesc(vol, flags) })
}

func (c calls) StorageVolGetPath(vol libvirt.StorageVol) (string, error) {
	return result(c, "StorageVolGetPath", func(a api) (string, error) { return a.StorageVolGetPath(vol) })
}

func (c calls) StorageVolUpload(
	vol libvirt.StorageVol, from io.Reader, offset, length uint64, flags libvirt.StorageVolUploadFlags,
) error {
	return c.around(rpcUpload, func(a api) error { return a.StorageVolUpload(vol, from, offset, length, flags) })
}

func (c calls) StorageVolDownload(
	vol libvirt.StorageVol, to io.Writer, offset, length uint64, flags libvirt.StorageVolDownloadFlags,
) error {
	return c.around(rpcDownload, func(a api) error { return a.StorageVolDownload(vol, to, offset, length, flags) })
}

func (c calls) ConnectGetLibVersion() (uint64, error) {
	return result(c, "ConnectGetLibVersion", func(a api) (uint64, error) { return a.ConnectGetLibVersion() })
}

func (c calls) ConnectGetVersion() (uint64, error) {
	return result(c, "ConnectGetVersion", func(a api) (uint64, error) { return a.ConnectGetVersion() })
}

func (c calls) ConnectGetDomainCapabilities(
	emulator, arch, machine, virttype libvirt.OptString, flags libvirt.ConnectGetDomainCapabilitiesFlags,
) (string, error) {
	return result(c, "ConnectGetDomainCapabilities", func(a api) (string, error) {
		return a.ConnectGetDomainCapabilities(emulator, arch, machine, virttype, flags)
	})
}

type nodeInfo struct {
	model                                    [32]int8
	memory                                   uint64
	cpus, mhz, nodes, sockets, cores, thread int32
}

func (c calls) NodeGetInfo() (
	model [32]int8, memory uint64, cpus, mhz, nodes, sockets, cores, threads int32, err error,
) {
	n, err := result(c, "NodeGetInfo", func(a api) (n nodeInfo, err error) {
		n.model, n.memory, n.cpus, n.mhz, n.nodes, n.sockets, n.cores, n.thread, err = a.NodeGetInfo()
		return n, err
	})
	return n.model, n.memory, n.cpus, n.mhz, n.nodes, n.sockets, n.cores, n.thread, err
}

type memoryStats struct {
	params []libvirt.NodeGetMemoryStats
	count  int32
}

func (c calls) NodeGetMemoryStats(nparams, cell int32, flags uint32) ([]libvirt.NodeGetMemoryStats, int32, error) {
	m, err := result(c, "NodeGetMemoryStats", func(a api) (m memoryStats, err error) {
		m.params, m.count, err = a.NodeGetMemoryStats(nparams, cell, flags)
		return m, err
	})
	return m.params, m.count, err
}

func (c calls) NodeGetFreeMemory() (uint64, error) {
	return result(c, "NodeGetFreeMemory", func(a api) (uint64, error) { return a.NodeGetFreeMemory() })
}

func (c calls) NetworkLookupByName(name string) (libvirt.Network, error) {
	return result(c, "NetworkLookupByName", func(a api) (libvirt.Network, error) { return a.NetworkLookupByName(name) })
}

func (c calls) NetworkIsActive(network libvirt.Network) (int32, error) {
	return result(c, "NetworkIsActive", func(a api) (int32, error) { return a.NetworkIsActive(network) })
}

type leases struct {
	all   []libvirt.NetworkDhcpLease
	count uint32
}

func (c calls) NetworkGetDhcpLeases(network libvirt.Network, mac libvirt.OptString, need int32, flags uint32) (
	[]libvirt.NetworkDhcpLease, uint32, error,
) {
	l, err := result(c, "NetworkGetDhcpLeases", func(a api) (l leases, err error) {
		l.all, l.count, err = a.NetworkGetDhcpLeases(network, mac, need, flags)
		return l, err
	})
	return l.all, l.count, err
}
