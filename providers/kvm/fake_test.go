package kvm

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// memory is a libvirt in memory, as far as the provider knows one. Its answers have the
// numbers and words of a real one. One that lies is found by the tests against the test
// driver and the lab.
type memory struct {
	mu      sync.Mutex
	domains map[string]*fakeDomain
	volumes map[string]*fakeVolume
	pool    string
	network string

	poolFree   uint64 // bytes
	poolMade   uint64 // bytes that were made free, and that libvirt has not noticed
	memoryFree uint64 // bytes
	silent     bool   // no source knows an address
	addresses  int    // given so far
	today      func() time.Time
	// before is asked before each call, outside of the lock; its error is the answer.
	before func(rpc, subject string) error
	called []string
}

type fakeDomain struct {
	libvirt.Domain
	xml           libvirtxml.Domain
	state, reason int32
	address       string
	locked        bool
}

type fakeVolume struct {
	xml  libvirtxml.StorageVolume
	data []byte
}

const (
	mib        = 1 << 20
	poolTotal  = 100 << 30
	memoryHere = 64 << 30
)

func newMemory() *memory {
	return &memory{
		domains: map[string]*fakeDomain{}, volumes: map[string]*fakeVolume{}, pool: defaultPool, network: defaultNetwork,
		poolFree: poolTotal / 2, memoryFree: memoryHere, today: time.Now,
	}
}

func says(code libvirt.ErrorNumber, format string, args ...any) error {
	return libvirt.Error{Code: uint32(code), Message: fmt.Sprintf(format, args...)}
}

// enter begins a call. The test that is asked first may change what is there.
func (m *memory) enter(rpc, subject string) (leave func(), err error) {
	m.mu.Lock()
	before := m.before
	m.called = append(m.called, strings.TrimSpace(rpc+" "+subject))
	m.mu.Unlock()
	if before != nil {
		if err := before(rpc, subject); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	return m.mu.Unlock, nil
}

func (m *memory) domain(dom libvirt.Domain) (*fakeDomain, error) {
	d := m.domains[dom.Name]
	if d == nil || d.UUID != dom.UUID {
		return nil, says(libvirt.ErrNoDomain, "Domain not found: no domain with matching uuid '%s' (%s)",
			uuid.UUID(dom.UUID), dom.Name)
	}
	return d, nil
}

// change begins a call that a task of the backend holds up.
func (m *memory) change(dom libvirt.Domain) (*fakeDomain, error) {
	d, err := m.domain(dom)
	if err == nil && d.locked {
		return nil, says(libvirt.ErrOperationTimeout, "Timed out during operation: cannot acquire state change lock "+
			"(held by monitor=remoteDispatchDomainSuspend)")
	}
	return d, err
}

func (m *memory) ConnectListAllDomains(int32, libvirt.ConnectListAllDomainsFlags) ([]libvirt.Domain, uint32, error) {
	leave, err := m.enter("ConnectListAllDomains", "")
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	var all []libvirt.Domain
	for _, d := range m.domains {
		all = append(all, d.Domain)
	}
	return all, uint32(len(all)), nil
}

func (m *memory) DomainLookupByName(name string) (libvirt.Domain, error) {
	leave, err := m.enter("DomainLookupByName", name)
	if err != nil {
		return libvirt.Domain{}, err
	}
	defer leave()
	if d := m.domains[name]; d != nil {
		return d.Domain, nil
	}
	return libvirt.Domain{}, says(libvirt.ErrNoDomain, "Domain not found: no domain with matching name '%s'", name)
}

func (m *memory) DomainGetXMLDesc(dom libvirt.Domain, _ libvirt.DomainXMLFlags) (string, error) {
	leave, err := m.enter("DomainGetXMLDesc", dom.Name)
	if err != nil {
		return "", err
	}
	defer leave()
	d, err := m.domain(dom)
	if err != nil {
		return "", err
	}
	return d.xml.Marshal()
}

func (m *memory) DomainGetState(dom libvirt.Domain, _ uint32) (int32, int32, error) {
	leave, err := m.enter("DomainGetState", dom.Name)
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	d, err := m.domain(dom)
	if err != nil {
		return 0, 0, err
	}
	return d.state, d.reason, nil
}

func (m *memory) DomainDefineXMLFlags(text string, _ libvirt.DomainDefineFlags) (libvirt.Domain, error) {
	leave, err := m.enter("DomainDefineXMLFlags", text)
	if err != nil {
		return libvirt.Domain{}, err
	}
	defer leave()
	d := &fakeDomain{state: int32(libvirt.DomainShutoff)}
	if err := d.xml.Unmarshal(text); err != nil {
		return libvirt.Domain{}, says(libvirt.ErrXMLDetail, "(domain_definition):1: %v", err)
	}
	id, err := uuid.Parse(d.xml.UUID)
	if err != nil {
		return libvirt.Domain{}, says(libvirt.ErrXMLError, "XML error: malformed uuid element")
	}
	d.Domain = libvirt.Domain{Name: d.xml.Name, UUID: libvirt.UUID(id), ID: -1}
	if was := m.domains[d.Name]; was != nil {
		return libvirt.Domain{}, says(libvirt.ErrOperationFailed,
			"operation failed: domain '%s' is already defined with uuid %s", d.Name, uuid.UUID(was.UUID))
	}
	m.domains[d.Name] = d
	return d.Domain, nil
}

func (m *memory) DomainCreate(dom libvirt.Domain) error {
	leave, err := m.enter("DomainCreate", dom.Name)
	if err != nil {
		return err
	}
	defer leave()
	d, err := m.change(dom)
	if err != nil {
		return err
	}
	if d.state == int32(libvirt.DomainPaused) && d.reason == int32(libvirt.DomainPausedStartingUp) {
		d.state, d.reason = int32(libvirt.DomainRunning), int32(libvirt.DomainRunningBooted) // it waits
	}
	if d.state == int32(libvirt.DomainRunning) {
		return says(libvirt.ErrOperationInvalid, "Requested operation is not valid: domain is already running")
	}
	for _, disk := range d.xml.Devices.Disks {
		if m.volumes[strings.TrimPrefix(disk.Source.File.File, poolPath)] == nil {
			d.state, d.reason = int32(libvirt.DomainShutoff), int32(libvirt.DomainShutoffFailed)
			return says(libvirt.ErrSystemError, "Cannot access storage file '%s': No such file or directory",
				disk.Source.File.File)
		}
	}
	m.addresses++
	d.address = "192.0.2." + strconv.Itoa(1+m.addresses%250)
	d.state, d.reason = int32(libvirt.DomainRunning), int32(libvirt.DomainRunningBooted)
	return nil
}

func (m *memory) DomainSetMetadata(dom libvirt.Domain, _ int32, metadata, key, uri libvirt.OptString,
	_ libvirt.DomainModificationImpact,
) error {
	leave, err := m.enter("DomainSetMetadata", dom.Name)
	if err != nil {
		return err
	}
	defer leave()
	d, err := m.change(dom)
	if err != nil {
		return err
	}
	inside := strings.TrimSuffix(strings.TrimPrefix(metadata[0], "<instance"), "</instance>")
	d.xml.Metadata = &libvirtxml.DomainMetadata{XML: fmt.Sprintf("<%[1]s:instance xmlns:%[1]s=%[2]q%[3]s</%[1]s:instance>",
		key[0], uri[0], inside)}
	return nil
}

func (m *memory) DomainDestroyFlags(dom libvirt.Domain, _ libvirt.DomainDestroyFlagsValues) error {
	leave, err := m.enter("DomainDestroyFlags", dom.Name)
	if err != nil {
		return err
	}
	defer leave()
	d, err := m.change(dom)
	if err != nil {
		return err
	}
	if d.state == int32(libvirt.DomainShutoff) {
		return says(libvirt.ErrOperationInvalid, "Requested operation is not valid: domain is not running")
	}
	d.state, d.reason = int32(libvirt.DomainShutoff), int32(libvirt.DomainShutoffDestroyed)
	return nil
}

func (m *memory) DomainUndefineFlags(dom libvirt.Domain, flags libvirt.DomainUndefineFlagsValues) error {
	leave, err := m.enter("DomainUndefineFlags", fmt.Sprintf("%s %d", dom.Name, flags))
	if err != nil {
		return err
	}
	defer leave()
	d, err := m.change(dom)
	if err != nil {
		return err
	}
	delete(m.domains, d.Name)
	return nil
}

func (m *memory) DomainInterfaceAddresses(dom libvirt.Domain, source, _ uint32) ([]libvirt.DomainInterface, error) {
	leave, err := m.enter("DomainInterfaceAddresses", fmt.Sprintf("%s %d", dom.Name, source))
	if err != nil {
		return nil, err
	}
	defer leave()
	d, err := m.domain(dom)
	if err != nil {
		return nil, err
	}
	switch {
	case source == uint32(libvirt.DomainInterfaceAddressesSrcAgent):
		return nil, says(libvirt.ErrAgentUnresponsive,
			"Guest agent is not responding: QEMU guest agent is not connected")
	case source == uint32(libvirt.DomainInterfaceAddressesSrcArp):
		return nil, says(libvirt.ErrInternalError, "internal error: malformed netlink response message")
	case m.silent:
		return nil, nil
	}
	return []libvirt.DomainInterface{{
		Name: "vnet0", Hwaddr: libvirt.OptString{d.xml.Devices.Interfaces[0].MAC.Address},
		Addrs: []libvirt.DomainIPAddr{{Addr: d.address, Prefix: 24}},
	}}, nil
}

// poolPath is where the pool has its files.
const poolPath = "/var/lib/libvirt/images/"

func (m *memory) StoragePoolLookupByName(name string) (libvirt.StoragePool, error) {
	leave, err := m.enter("StoragePoolLookupByName", name)
	if err != nil {
		return libvirt.StoragePool{}, err
	}
	defer leave()
	if name != m.pool {
		return libvirt.StoragePool{}, says(libvirt.ErrNoStoragePool,
			"Storage pool not found: no storage pool with matching name '%s'", name)
	}
	return libvirt.StoragePool{Name: name}, nil
}

func (m *memory) StoragePoolGetInfo(pool libvirt.StoragePool) (uint8, uint64, uint64, uint64, error) {
	leave, err := m.enter("StoragePoolGetInfo", pool.Name)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer leave()
	return uint8(libvirt.StoragePoolRunning), poolTotal, poolTotal - m.poolFree, m.poolFree, nil
}

func (m *memory) StoragePoolRefresh(pool libvirt.StoragePool, _ uint32) error {
	leave, err := m.enter("StoragePoolRefresh", pool.Name)
	if err == nil {
		m.poolFree, m.poolMade = m.poolFree+m.poolMade, 0
		leave()
	}
	return err
}

func (m *memory) StoragePoolListAllVolumes(pool libvirt.StoragePool, _ int32, _ uint32) (
	[]libvirt.StorageVol, uint32, error,
) {
	leave, err := m.enter("StoragePoolListAllVolumes", pool.Name)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	var all []libvirt.StorageVol
	for name := range m.volumes {
		all = append(all, m.vol(name))
	}
	return all, uint32(len(all)), nil
}

func (m *memory) vol(name string) libvirt.StorageVol {
	return libvirt.StorageVol{Pool: m.pool, Name: name, Key: poolPath + name}
}

func (m *memory) volume(name string) (*fakeVolume, error) {
	if v := m.volumes[name]; v != nil {
		return v, nil
	}
	return nil, says(libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching name '%s'", name)
}

func (m *memory) StorageVolLookupByName(_ libvirt.StoragePool, name string) (libvirt.StorageVol, error) {
	leave, err := m.enter("StorageVolLookupByName", name)
	if err != nil {
		return libvirt.StorageVol{}, err
	}
	defer leave()
	_, err = m.volume(name)
	return m.vol(name), err
}

func (m *memory) StorageVolCreateXML(_ libvirt.StoragePool, text string, _ libvirt.StorageVolCreateFlags) (
	libvirt.StorageVol, error,
) {
	var v fakeVolume
	if err := v.xml.Unmarshal(text); err != nil {
		return libvirt.StorageVol{}, says(libvirt.ErrXMLError, "XML error: malformed volume")
	}
	leave, err := m.enter("StorageVolCreateXML", v.xml.Name)
	if err != nil {
		return libvirt.StorageVol{}, err
	}
	defer leave()
	if m.volumes[v.xml.Name] != nil {
		return libvirt.StorageVol{}, says(libvirt.ErrStorageVolExist, "storage volume name '%s' already in use.", v.xml.Name)
	}
	if on := v.xml.BackingStore; on != nil && m.volumes[strings.TrimPrefix(on.Path, poolPath)] == nil {
		return libvirt.StorageVol{}, says(libvirt.ErrSystemError,
			"inaccessible backing store volume %s: No such file or directory", on.Path)
	}
	v.xml.Allocation = &libvirtxml.StorageVolumeSize{Value: 196 << 10, Unit: "bytes"}
	v.xml.Target.Path = poolPath + v.xml.Name
	m.stamp(&v, m.today())
	m.volumes[v.xml.Name] = &v
	return m.vol(v.xml.Name), nil
}

func (m *memory) stamp(v *fakeVolume, at time.Time) {
	v.xml.Target.Timestamps = &libvirtxml.StorageVolumeTargetTimestamps{
		Mtime: fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()),
	}
}

func (m *memory) StorageVolDelete(vol libvirt.StorageVol, _ libvirt.StorageVolDeleteFlags) error {
	leave, err := m.enter("StorageVolDelete", vol.Name)
	if err != nil {
		return err
	}
	defer leave()
	_, err = m.volume(vol.Name)
	delete(m.volumes, vol.Name)
	return err
}

func (m *memory) StorageVolGetInfoFlags(vol libvirt.StorageVol, _ uint32) (int8, uint64, uint64, error) {
	leave, err := m.enter("StorageVolGetInfoFlags", vol.Name)
	if err != nil {
		return 0, 0, 0, err
	}
	defer leave()
	v, err := m.volume(vol.Name)
	if err != nil {
		return 0, 0, 0, err
	}
	return 0, v.xml.Capacity.Value, uint64(len(v.data)), nil
}

func (m *memory) StorageVolGetXMLDesc(vol libvirt.StorageVol, _ uint32) (string, error) {
	leave, err := m.enter("StorageVolGetXMLDesc", vol.Name)
	if err != nil {
		return "", err
	}
	defer leave()
	v, err := m.volume(vol.Name)
	if err != nil {
		return "", err
	}
	return v.xml.Marshal()
}

func (m *memory) StorageVolGetPath(vol libvirt.StorageVol) (string, error) {
	leave, err := m.enter("StorageVolGetPath", vol.Name)
	if err != nil {
		return "", err
	}
	defer leave()
	v, err := m.volume(vol.Name)
	if err != nil {
		return "", err
	}
	return v.xml.Target.Path, nil
}

func (m *memory) StorageVolUpload(
	vol libvirt.StorageVol, from io.Reader, offset, length uint64, _ libvirt.StorageVolUploadFlags,
) error {
	leave, err := m.enter("StorageVolUpload", vol.Name)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(from)
	defer leave()
	v, missing := m.volume(vol.Name)
	if err != nil || missing != nil {
		return missing
	}
	if uint64(len(data)) > length {
		return says(libvirt.ErrSystemError, "cannot write to stream: No space left on device")
	}
	end := offset + uint64(len(data))
	v.data = append(v.data[:min(offset, uint64(len(v.data)))], data...)
	v.data = v.data[:min(end, m.poolFree)] // a full pool, and no error
	return nil
}

func (m *memory) StorageVolDownload(
	vol libvirt.StorageVol, to io.Writer, offset, length uint64, _ libvirt.StorageVolDownloadFlags,
) error {
	leave, err := m.enter("StorageVolDownload", vol.Name)
	if err != nil {
		return err
	}
	v, err := m.volume(vol.Name)
	var data []byte
	if err == nil {
		data = slices.Clone(v.data[min(offset, uint64(len(v.data))):])
	}
	leave()
	if err != nil {
		return err
	}
	if length > 0 { // 0 is all that there is
		data = data[:min(uint64(len(data)), length)]
	}
	_, err = to.Write(data)
	return err
}

func (m *memory) ConnectGetLibVersion() (uint64, error) {
	leave, err := m.enter("ConnectGetLibVersion", "")
	if err == nil {
		leave()
	}
	return 9_000_000, err
}

func (m *memory) ConnectGetVersion() (uint64, error) {
	leave, err := m.enter("ConnectGetVersion", "")
	if err == nil {
		leave()
	}
	return 7_002_022, err
}

func (m *memory) ConnectGetDomainCapabilities(_, _, _, kind libvirt.OptString,
	_ libvirt.ConnectGetDomainCapabilitiesFlags,
) (string, error) {
	leave, err := m.enter("ConnectGetDomainCapabilities", kind[0])
	if err == nil {
		leave()
	}
	return "<domainCapabilities/>", err
}

func (m *memory) NodeGetInfo() (
	model [32]int8, memory uint64, cpus, mhz, nodes, sockets, cores, threads int32, err error,
) {
	leave, err := m.enter("NodeGetInfo", "")
	if err == nil {
		leave()
	}
	return model, memoryHere >> 10, 4, 0, 1, 1, 4, 1, err
}

func (m *memory) NodeGetMemoryStats(nparams, _ int32, _ uint32) ([]libvirt.NodeGetMemoryStats, int32, error) {
	leave, err := m.enter("NodeGetMemoryStats", "")
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	stats := []libvirt.NodeGetMemoryStats{
		{Field: "total", Value: memoryHere >> 10},
		{Field: "free", Value: m.memoryFree >> 11},
		{Field: "buffers", Value: 0},
		{Field: "cached", Value: m.memoryFree >> 11},
	}
	if nparams == 0 {
		return nil, int32(len(stats)), nil
	}
	return stats, int32(len(stats)), nil
}

func (m *memory) NodeGetFreeMemory() (uint64, error) {
	leave, err := m.enter("NodeGetFreeMemory", "")
	if err != nil {
		return 0, err
	}
	defer leave()
	return m.memoryFree, nil
}

func (m *memory) NetworkLookupByName(name string) (libvirt.Network, error) {
	leave, err := m.enter("NetworkLookupByName", name)
	if err != nil {
		return libvirt.Network{}, err
	}
	defer leave()
	if name != m.network {
		return libvirt.Network{}, says(libvirt.ErrNoNetwork, "Network not found: no network with matching name '%s'", name)
	}
	return libvirt.Network{Name: name}, nil
}

func (m *memory) NetworkIsActive(network libvirt.Network) (int32, error) {
	leave, err := m.enter("NetworkIsActive", network.Name)
	if err == nil {
		leave()
	}
	return 1, err
}

func (m *memory) NetworkGetDhcpLeases(network libvirt.Network, _ libvirt.OptString, _ int32, _ uint32) (
	[]libvirt.NetworkDhcpLease, uint32, error,
) {
	leave, err := m.enter("NetworkGetDhcpLeases", network.Name)
	if err == nil {
		leave()
	}
	return nil, 0, err
}

var _ api = (*memory)(nil)
