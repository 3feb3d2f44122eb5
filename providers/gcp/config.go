package gcp

import (
	"cmp"
	"fmt"
	"regexp"
	"time"
)

// Config is the provider's block of the configuration.
type Config struct {
	// Project is the ID of the project that instances are made in. Required.
	Project string `json:"project"`
	// Zones are where instances may be, such as us-central1-a. Without any, a Proxy has
	// to name a zone or a region, and every zone of a region is used.
	Zones []string `json:"zones"`
	// MachineType is taken where a Proxy names none. Default e2-small.
	MachineType string `json:"machineType"`
	// Image is taken where a Proxy names none: IMAGE or family/FAMILY of this project,
	// PROJECT/IMAGE or PROJECT/family/FAMILY of another one, or the whole path.
	// Default ubuntu-os-cloud/family/ubuntu-2404-lts-amd64.
	Image string `json:"image"`
	// Network is the name of a network, or projects/P/global/networks/N. Default "default".
	Network string `json:"network"`
	// Subnetwork is a name in the region of the zone, or projects/P/regions/R/subnetworks/S.
	Subnetwork string `json:"subnetwork"`
	// NetworkTag is on every instance, for firewall rules. Default egress-proxy.
	NetworkTag string `json:"networkTag"`
	// DiskSizeGb is the size of the boot disk. Default 10.
	DiskSizeGb int64 `json:"diskSizeGb"`
	// DiskType is that of the boot disk. Default pd-balanced.
	DiskType string `json:"diskType"`
	// Spot makes instances that Google may take back at any time, at a lower price.
	Spot bool `json:"spot"`
	// Labels are put on every instance, besides those of its Proxy and the marks.
	Labels map[string]string `json:"labels"`
	// ServiceAccount is what programs of the guest act as. Default: none.
	ServiceAccount string `json:"serviceAccount"`
	// Addressing is the address that is reported: external or internal. Default external.
	Addressing string `json:"addressing"`
	// Firewall is managed, one rule of the provider's own, or manual. Default manual.
	Firewall string `json:"firewall"`
	// SourceRanges are the CIDRs that the managed rule lets in. Required for it.
	SourceRanges []string `json:"sourceRanges"`
	// StockoutMemory is for how long a zone without capacity is tried last. Default 10m.
	StockoutMemory string `json:"stockoutMemory"`
	// CallTimeout bounds each call of the API. Default 20s.
	CallTimeout string `json:"callTimeout"`
	// CredentialsFile is a key of a service account or a workload identity configuration.
	// Default: application default credentials.
	CredentialsFile string `json:"credentialsFile"`
	// Endpoint is another address of the API, for tests and private access.
	Endpoint string `json:"endpoint"`
	// InsecureNoAuthentication sends no credential: for a server of tests at Endpoint.
	InsecureNoAuthentication bool `json:"insecureNoAuthentication"`
}

// What is taken where nothing is configured.
const (
	defaultMachineType = "e2-small"
	defaultImage       = "ubuntu-os-cloud/family/ubuntu-2404-lts-amd64"
	defaultNetwork     = "default"
	defaultNetworkTag  = "egress-proxy"
	defaultDiskSizeGb  = 10
	defaultDiskType    = "pd-balanced"
	defaultMemory      = 10 * time.Minute
	defaultCallTimeout = 20 * time.Second

	addressingExternal = "external"
	addressingInternal = "internal"
	firewallManual     = "manual"
	firewallManaged    = "managed"

	largestDiskGb = 65536 // of a persistent disk: 64 TiB
)

// settings is a Config that was checked.
type settings struct {
	Config
	memory, callTime time.Duration
}

// The forms of names at Compute Engine:
// https://cloud.google.com/compute/docs/naming-resources.
var (
	projectForm = regexp.MustCompile(`^([a-z0-9.-]{1,63}:)?[a-z][-a-z0-9]{4,28}[a-z0-9]$`)
	resource    = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	regionForm  = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]{1,2}$`)
	zoneForm    = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]{1,2}-[a-z0-9]{1,3}$`)
	account     = regexp.MustCompile(`^[a-z0-9._-]{1,64}@[a-z0-9.-]{1,190}$`)
)

// resolve checks a configuration and fills in the defaults. Its errors name the key and
// the value.
func (c Config) resolve() (settings, error) {
	c.MachineType = cmp.Or(c.MachineType, defaultMachineType)
	c.Image = cmp.Or(c.Image, defaultImage)
	c.Network = cmp.Or(c.Network, defaultNetwork)
	c.NetworkTag = cmp.Or(c.NetworkTag, defaultNetworkTag)
	c.DiskSizeGb = cmp.Or(c.DiskSizeGb, defaultDiskSizeGb)
	c.DiskType = cmp.Or(c.DiskType, defaultDiskType)
	c.Addressing = cmp.Or(c.Addressing, addressingExternal)
	c.Firewall = cmp.Or(c.Firewall, firewallManual)
	s := settings{Config: c}
	for _, check := range []func() error{
		c.checkNames, c.checkZones, c.checkChoices, c.checkLabels, c.checkRanges, c.checkInsecure, c.checkEndpoint,
		func() (err error) {
			s.memory, err = duration("stockoutMemory", c.StockoutMemory, defaultMemory)
			return err
		},
		func() (err error) {
			s.callTime, err = duration("callTimeout", c.CallTimeout, defaultCallTimeout)
			return err
		},
	} {
		if err := check(); err != nil {
			return settings{}, err
		}
	}
	return s, nil
}

func duration(key, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: %q is not a duration above zero, such as 10m", key, text)
	}
	return d, nil
}
