package kvm

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// The formats of a volume, in libvirt's words.
const (
	formatQCOW2 = "qcow2"
	formatRaw   = "raw"
)

// agentChannel is where the guest agent and libvirt meet.
const agentChannel = "org.qemu.guest_agent.0"

// guest is what a domain is made of.
type guest struct {
	name          string
	domainType    string
	machine       machine
	overlay, seed string // paths on the host
	network       string // or bridge
	bridge        string
	marks         marks
}

// domainXML describes a domain. It holds no user-data: libvirt's errors repeat it. The UUID
// is a new one each time, so that of two creates of one name only one can define it, and the
// MAC follows from it: no lease and no neighbour of an earlier life has it.
func (g guest) domainXML() (string, error) {
	id := uuid.New()
	metadata, err := g.marks.element()
	if err != nil {
		return "", err
	}
	d := libvirtxml.Domain{
		Type: g.domainType, Name: g.name, UUID: id.String(),
		Metadata:   &libvirtxml.DomainMetadata{XML: metadata},
		Memory:     &libvirtxml.DomainMemory{Value: uint(g.machine.memory >> 10), Unit: "KiB"},
		VCPU:       &libvirtxml.DomainVCPU{Value: g.machine.vcpus},
		OS:         &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Type: "hvm"}},
		Features:   &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}, APIC: &libvirtxml.DomainFeatureAPIC{}},
		Clock:      &libvirtxml.DomainClock{Offset: "utc"},
		OnPoweroff: "destroy", OnReboot: "restart", OnCrash: "destroy",
		Devices: g.devices(id),
	}
	if g.domainType == domainKVM {
		d.CPU = &libvirtxml.DomainCPU{Mode: "host-passthrough"}
	}
	return d.Marshal()
}

// devices puts the seed on a virtio disk: the kernels of cloud images often have no driver for
// a CD-ROM, and cloud-init then finds no seed and says nothing.
func (g guest) devices(id uuid.UUID) *libvirtxml.DomainDeviceList {
	seed := disk(g.seed, formatRaw, "vdb")
	seed.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	port := uint(0)
	return &libvirtxml.DomainDeviceList{
		Disks:      []libvirtxml.DomainDisk{disk(g.overlay, formatQCOW2, "vda"), seed},
		Interfaces: []libvirtxml.DomainInterface{g.card(id)},
		Serials: []libvirtxml.DomainSerial{{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
			Target: &libvirtxml.DomainSerialTarget{Port: &port},
		}},
		Channels: []libvirtxml.DomainChannel{{
			Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{}},
			Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: agentChannel}},
		}},
		RNGs: []libvirtxml.DomainRNG{{ // a guest without entropy boots for minutes
			Model:   "virtio",
			Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
		}},
	}
}

func disk(path, format, dev string) libvirtxml.DomainDisk {
	d := libvirtxml.DomainDisk{
		Device: "disk",
		Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: format},
		Source: &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}},
		Target: &libvirtxml.DomainDiskTarget{Dev: dev, Bus: "virtio"},
	}
	if format == formatQCOW2 {
		d.Driver.Discard = "unmap"
		d.Boot = &libvirtxml.DomainDeviceBoot{Order: 1}
	}
	return d
}

func (g guest) card(id uuid.UUID) libvirtxml.DomainInterface {
	source := &libvirtxml.DomainInterfaceSource{}
	if g.bridge != "" {
		source.Bridge = &libvirtxml.DomainInterfaceSourceBridge{Bridge: g.bridge}
	} else {
		source.Network = &libvirtxml.DomainInterfaceSourceNetwork{Network: g.network}
	}
	return libvirtxml.DomainInterface{
		MAC:    &libvirtxml.DomainInterfaceMAC{Address: macOf(id)},
		Source: source,
		Model:  &libvirtxml.DomainInterfaceModel{Type: "virtio"},
	}
}

// macOf returns a locally administered unicast address. Five of its bytes are a digest: the
// three that are left behind a vendor's prefix soon meet on a large network.
func macOf(id uuid.UUID) string {
	sum := sha256.Sum256(id[:])
	return fmt.Sprintf("52:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])
}

// described is what is read back from the XML of a domain.
type described struct {
	marks marks
	nics  []nic
}

func describe(text string) (described, error) {
	var d libvirtxml.Domain
	if err := d.Unmarshal(text); err != nil {
		return described{}, transient("the XML of the domain makes no sense: %w", err)
	}
	var out described
	if d.Metadata != nil {
		m, err := readMarks(d.Metadata.XML)
		if err != nil {
			return described{}, transient("the metadata of the domain makes no sense: %w", err)
		}
		out.marks = m
	}
	if d.Devices == nil {
		return out, nil
	}
	for _, i := range d.Devices.Interfaces {
		n := nic{}
		if i.MAC != nil {
			n.mac = i.MAC.Address
		}
		if i.Source != nil && i.Source.Network != nil {
			n.network = i.Source.Network.Network
		}
		out.nics = append(out.nics, n)
	}
	return out, nil
}

// volumeXML describes a volume to make, of a size in bytes.
func volumeXML(name, format string, size uint64) (string, error) {
	v := libvirtxml.StorageVolume{
		Name:     name,
		Capacity: &libvirtxml.StorageVolumeSize{Value: size, Unit: "bytes"},
		Target:   &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: format}},
	}
	return v.Marshal()
}

// backing is what an overlay lies on.
type backing struct{ path, format string }

func overlayXML(name string, size uint64, on backing) (string, error) {
	v := libvirtxml.StorageVolume{
		Name:     name,
		Capacity: &libvirtxml.StorageVolumeSize{Value: size, Unit: "bytes"},
		Target:   &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: formatQCOW2}},
		BackingStore: &libvirtxml.StorageVolumeBackingStore{
			Path: on.path, Format: &libvirtxml.StorageVolumeTargetFormat{Type: on.format},
		},
	}
	return v.Marshal()
}

// volumeOn reports whether a volume's XML says that it is an overlay over the given one, and
// how much of it was written.
func volumeOn(text string) (on backing, capacity, allocation uint64, err error) {
	var v libvirtxml.StorageVolume
	if err := v.Unmarshal(text); err != nil {
		return on, 0, 0, transient("the XML of a volume makes no sense: %w", err)
	}
	if v.BackingStore != nil {
		on.path = v.BackingStore.Path
		if v.BackingStore.Format != nil {
			on.format = v.BackingStore.Format.Type
		}
	}
	if v.Capacity != nil {
		capacity = v.Capacity.Value
	}
	if v.Allocation != nil {
		allocation = v.Allocation.Value
	}
	return on, capacity, allocation, nil
}

// changedAt reads when a volume was last written to, in seconds since 1970 with a fraction.
func changedAt(text string) string {
	var v libvirtxml.StorageVolume
	if v.Unmarshal(text) != nil || v.Target == nil || v.Target.Timestamps == nil {
		return ""
	}
	return strings.TrimSpace(v.Target.Timestamps.Mtime)
}
