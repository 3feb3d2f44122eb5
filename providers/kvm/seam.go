package kvm

import (
	"context"
	"io"

	"github.com/digitalocean/go-libvirt"

	"github.com/egressfleet/egressfleet/providers/kvm/conn"
	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

// api is the seam: the methods of libvirt's client that the provider needs. The real one is
// *libvirt.Libvirt; calls is a decorator; tests have a libvirt in memory.
type api interface {
	domainAPI
	volumeAPI
	hostAPI
}

type domainAPI interface {
	ConnectListAllDomains(NeedResults int32, Flags libvirt.ConnectListAllDomainsFlags) ([]libvirt.Domain, uint32, error)
	DomainLookupByName(Name string) (libvirt.Domain, error)
	DomainGetXMLDesc(Dom libvirt.Domain, Flags libvirt.DomainXMLFlags) (string, error)
	DomainGetState(Dom libvirt.Domain, Flags uint32) (state int32, reason int32, err error)
	DomainDefineXMLFlags(XML string, Flags libvirt.DomainDefineFlags) (libvirt.Domain, error)
	DomainCreate(Dom libvirt.Domain) error
	DomainSetMetadata(Dom libvirt.Domain, Type int32, Metadata, Key, Uri libvirt.OptString,
		Flags libvirt.DomainModificationImpact) error
	DomainDestroyFlags(Dom libvirt.Domain, Flags libvirt.DomainDestroyFlagsValues) error
	DomainUndefineFlags(Dom libvirt.Domain, Flags libvirt.DomainUndefineFlagsValues) error
	DomainInterfaceAddresses(Dom libvirt.Domain, Source uint32, Flags uint32) ([]libvirt.DomainInterface, error)
}

type volumeAPI interface {
	StoragePoolLookupByName(Name string) (libvirt.StoragePool, error)
	StoragePoolGetInfo(Pool libvirt.StoragePool) (state uint8, capacity, allocation, available uint64, err error)
	StoragePoolRefresh(Pool libvirt.StoragePool, Flags uint32) error
	StoragePoolListAllVolumes(Pool libvirt.StoragePool, NeedResults int32, Flags uint32) (
		[]libvirt.StorageVol, uint32, error)
	StorageVolLookupByName(Pool libvirt.StoragePool, Name string) (libvirt.StorageVol, error)
	StorageVolCreateXML(Pool libvirt.StoragePool, XML string, Flags libvirt.StorageVolCreateFlags) (
		libvirt.StorageVol, error)
	StorageVolDelete(Vol libvirt.StorageVol, Flags libvirt.StorageVolDeleteFlags) error
	StorageVolGetInfoFlags(Vol libvirt.StorageVol, Flags uint32) (kind int8, capacity, allocation uint64, err error)
	StorageVolGetXMLDesc(Vol libvirt.StorageVol, Flags uint32) (string, error)
	StorageVolGetPath(Vol libvirt.StorageVol) (string, error)
	StorageVolUpload(Vol libvirt.StorageVol, outStream io.Reader, Offset, Length uint64,
		Flags libvirt.StorageVolUploadFlags) error
	StorageVolDownload(Vol libvirt.StorageVol, inStream io.Writer, Offset, Length uint64,
		Flags libvirt.StorageVolDownloadFlags) error
}

type hostAPI interface {
	ConnectGetLibVersion() (uint64, error)
	ConnectGetVersion() (uint64, error)
	ConnectGetDomainCapabilities(Emulatorbin, Arch, Machine, Virttype libvirt.OptString,
		Flags libvirt.ConnectGetDomainCapabilitiesFlags) (string, error)
	NodeGetInfo() (model [32]int8, memory uint64, cpus, mhz, nodes, sockets, cores, threads int32, err error)
	NodeGetMemoryStats(Nparams, CellNum int32, Flags uint32) ([]libvirt.NodeGetMemoryStats, int32, error)
	NodeGetFreeMemory() (uint64, error)
	NetworkLookupByName(Name string) (libvirt.Network, error)
	NetworkIsActive(Net libvirt.Network) (int32, error)
	NetworkGetDhcpLeases(Net libvirt.Network, Mac libvirt.OptString, NeedResults int32, Flags uint32) (
		[]libvirt.NetworkDhcpLease, uint32, error)
}

// link is the way to one host. What use does goes on without its caller when ctx ends, so it
// hands its result over and writes to nothing of the caller's.
type link interface {
	Do(ctx context.Context, use func(api) error) error    // on the connection that all share
	Probe(ctx context.Context, use func(api) error) error // on one of its own
	Close() error
}

// sshLink is the real link.
type sshLink struct{ host *conn.Host }

func newSSHLink(cfg HostConfig) link { return sshLink{conn.New(cfg.conn())} }

func (l sshLink) Do(ctx context.Context, use func(api) error) error {
	return l.host.Do(ctx, func(client *libvirt.Libvirt) error { return use(client) })
}

func (l sshLink) Probe(ctx context.Context, use func(api) error) error {
	return l.host.Probe(ctx, func(client *libvirt.Libvirt) error { return use(client) })
}

func (l sshLink) Close() error { return l.host.Close() }

var (
	_ api  = (*libvirt.Libvirt)(nil)
	_ api  = calls{}
	_ link = sshLink{}

	_ image.API = api(nil)
)
