package kvm

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

// Config is the provider's block of the configuration.
type Config struct {
	// DomainType is what runs the guests: "kvm" (the default) with the help of the processor,
	// or "qemu", which emulates it and works where there is no /dev/kvm. It is a choice, for a
	// /dev/kvm that is there may still run nothing.
	DomainType string `json:"domainType"`
	// Hosts are the machines that run libvirt. Required.
	Hosts []HostConfig `json:"hosts"`
	// Images are what spec.placement.image may name. Required. Never edit one: add another.
	Images map[string]ImageConfig `json:"images"`
	// MachineTypes are what spec.placement.machineType may name. Required.
	MachineTypes map[string]MachineTypeConfig `json:"machineTypes"`
	// Reserve is what a create leaves free on its host.
	Reserve ReserveConfig `json:"reserve"`
}

// ImageConfig is where a disk image comes from, and how it is told from another one.
type ImageConfig struct {
	URL    string `json:"url"`    // https:// or http://; or File
	File   string `json:"file"`   // an absolute path on the worker's machine; or URL
	SHA256 string `json:"sha256"` // of the file as it is, 64 hexadecimal digits; required
	Format string `json:"format"` // "qcow2" (the default) or "raw"
}

// MachineTypeConfig is the size of a guest. Sizes are written as 512Mi, 2Gi or 1Ti.
type MachineTypeConfig struct {
	VCPUs  int    `json:"vcpus"`  // 1 unless set
	Memory string `json:"memory"` // required
	Disk   string `json:"disk"`   // the image's own size unless set; never less than that
}

// ReserveConfig is what stays free on a host and in its pool.
type ReserveConfig struct {
	Memory string `json:"memory"` // 256Mi unless set
	Pool   string `json:"pool"`   // 1Gi unless set
}

// The domain types.
const (
	domainKVM  = "kvm"
	domainQEMU = "qemu"
)

const (
	defaultMemoryReserve = 256 << 20 // bytes: what QEMU and the host need besides the guest
	defaultPoolReserve   = 1 << 30   // bytes: overlays grow, and a full pool pauses their guests

	leastMemory = 16 << 20 // bytes: nothing that runs a proxy boots in less
	mostVCPUs   = 1024
)

// settings is a Config that was checked, with its defaults.
type settings struct {
	domainType    string
	hosts         []HostConfig
	images        map[string]ImageConfig
	machines      map[string]machine
	memoryReserve uint64 // bytes
	poolReserve   uint64 // bytes
}

// machine is the size of a guest, in bytes.
type machine struct {
	vcpus        uint
	memory, disk uint64 // disk 0: as large as the image
}

// resolve checks a configuration and fills in the defaults. Its errors name the field and
// the value. It reads no file.
func (c Config) resolve() (settings, error) {
	s := settings{domainType: cmp.Or(c.DomainType, domainKVM)}
	if s.domainType != domainKVM && s.domainType != domainQEMU {
		return s, fmt.Errorf("domainType: %q is neither %q nor %q", c.DomainType, domainKVM, domainQEMU)
	}
	var err error
	if s.hosts, err = resolveHosts(c.Hosts); err != nil {
		return s, err
	}
	if s.images, err = resolveImages(c.Images); err != nil {
		return s, err
	}
	if s.machines, err = resolveMachines(c.MachineTypes); err != nil {
		return s, err
	}
	if s.memoryReserve, err = sizeOr("reserve.memory", c.Reserve.Memory, defaultMemoryReserve); err != nil {
		return s, err
	}
	s.poolReserve, err = sizeOr("reserve.pool", c.Reserve.Pool, defaultPoolReserve)
	return s, err
}

func resolveImages(images map[string]ImageConfig) (map[string]ImageConfig, error) {
	if len(images) == 0 {
		return nil, errors.New("images: is empty, and every instance starts from one")
	}
	out := map[string]ImageConfig{}
	for _, key := range slices.Sorted(maps.Keys(images)) {
		field := "images." + key
		if err := providers.CheckFileName("images", key); err != nil {
			return nil, err
		}
		i, err := images[key].resolve(field)
		if err != nil {
			return nil, err
		}
		out[key] = i
	}
	return out, nil
}

func (i ImageConfig) resolve(field string) (ImageConfig, error) {
	i.Format = cmp.Or(i.Format, formatQCOW2)
	i.SHA256 = strings.ToLower(i.SHA256)
	const sha256Chars = 64
	switch _, err := hex.DecodeString(i.SHA256); {
	case i.Format != formatQCOW2 && i.Format != formatRaw:
		return i, fmt.Errorf("%s.format: %q is neither %q nor %q", field, i.Format, formatQCOW2, formatRaw)
	case err != nil || len(i.SHA256) != sha256Chars:
		return i, fmt.Errorf("%s.sha256: %q is not %d hexadecimal digits", field, i.SHA256, sha256Chars)
	}
	return i, i.checkSource(field)
}

// checkSource quotes no more of a URL than what cannot be a secret.
func (i ImageConfig) checkSource(field string) error {
	if (i.URL == "") == (i.File == "") {
		return fmt.Errorf("%s: exactly one of url and file must be set", field)
	}
	if i.File != "" && !filepath.IsAbs(i.File) {
		return fmt.Errorf("%s.file: %q is not an absolute path", field, i.File)
	}
	if err := i.entry(field).Validate(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

func resolveMachines(types map[string]MachineTypeConfig) (map[string]machine, error) {
	if len(types) == 0 {
		return nil, errors.New("machineTypes: is empty, and every instance has one")
	}
	out := map[string]machine{}
	for _, key := range slices.Sorted(maps.Keys(types)) {
		if err := providers.CheckFileName("machineTypes", key); err != nil {
			return nil, err
		}
		m, err := types[key].resolve("machineTypes." + key)
		if err != nil {
			return nil, err
		}
		out[key] = m
	}
	return out, nil
}

func (m MachineTypeConfig) resolve(field string) (machine, error) {
	vcpus := cmp.Or(m.VCPUs, 1)
	if vcpus < 1 || vcpus > mostVCPUs {
		return machine{}, fmt.Errorf("%s.vcpus: %d is not between 1 and %d", field, m.VCPUs, mostVCPUs)
	}
	memory, err := parseSize(field+".memory", m.Memory)
	if err != nil {
		return machine{}, err
	}
	if memory < leastMemory {
		return machine{}, fmt.Errorf("%s.memory: %q is less than 16Mi", field, m.Memory)
	}
	disk, err := sizeOr(field+".disk", m.Disk, 0)
	return machine{uint(vcpus), memory, disk}, err
}

func sizeOr(field, text string, otherwise uint64) (uint64, error) {
	if text == "" {
		return otherwise, nil
	}
	return parseSize(field, text)
}

// parseSize reads a size such as 512Mi. Only powers of 1024 are taken: whoever writes 1G
// means one or the other, and nobody can tell which.
func parseSize(field, text string) (uint64, error) {
	for unit, shift := range map[string]uint{"Mi": 20, "Gi": 30, "Ti": 40} {
		digits, ok := strings.CutSuffix(text, unit)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 20); err == nil {
			return n << shift, nil
		}
	}
	return 0, fmt.Errorf("%s: %q is not a size such as 512Mi, 20Gi or 1Ti", field, text)
}
