package kvm

import (
	"maps"
	"slices"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/image"
)

const (
	firstPort = 1
	lastPort  = 65535

	// maxCloudInit is what a seed takes, in bytes: it is held in memory while it is written
	// and read back.
	maxCloudInit = 4 << 20
)

// order is a request with what its words mean in the configuration.
type order struct {
	providers.CreateRequest
	machine machine
	image   image.Entry
	hosts   []*host // that may hold it, in the order of the configuration
}

// accept refuses what can never be made, before any host is asked.
func (p *Provider) accept(req providers.CreateRequest) (order, error) {
	if err := checkRequest(req); err != nil {
		return order{}, err
	}
	o := order{CreateRequest: req, hosts: p.candidates(req.Placement)}
	if len(o.hosts) == 0 {
		return order{}, p.noHost(req.Placement)
	}
	m, known := p.settings.machines[req.Placement.MachineType]
	if !known {
		return order{}, unknown("placement.machineType", req.Placement.MachineType,
			slices.Sorted(maps.Keys(p.settings.machines)))
	}
	i, known := p.settings.images[req.Placement.Image]
	if !known {
		return order{}, unknown("placement.image", req.Placement.Image,
			slices.Sorted(maps.Keys(p.settings.images)))
	}
	o.machine, o.image = m, i.entry(req.Placement.Image)
	return o, nil
}

func unknown(field, value string, known []string) error {
	return permanent("%s: %q is none of %s", field, value, strings.Join(known, ", "))
}

func checkRequest(req providers.CreateRequest) error {
	switch {
	case !isLabel(req.Name):
		return permanent("name: %q is not a DNS label", req.Name)
	case req.UID == "":
		return permanent(`uid: "" must be set: nobody could own the instance`)
	case req.Port < firstPort || req.Port > lastPort:
		return permanent("spec.port: %d is not between %d and %d", req.Port, firstPort, lastPort)
	case len(req.CloudInit) > maxCloudInit:
		return permanent("cloudInit: %d bytes are more than the %d that a seed takes", len(req.CloudInit), maxCloudInit)
	}
	for key := range req.Labels {
		if providers.IsMark(key) {
			return permanent("labels: %q is kept for the marks", key)
		}
	}
	return nil
}

// candidates are the hosts that a placement allows, retired ones too: an instance may be on
// one since before it was retired.
func (p *Provider) candidates(at providers.Placement) (fit []*host) {
	for _, h := range p.hosts {
		zone := at.Zone == "" || at.Zone == h.Name || at.Zone == h.Zone
		region := at.Region == "" || at.Region == h.Region
		if zone && region {
			fit = append(fit, h)
		}
	}
	return fit
}

// noHost says which of the two fields no host has, and which values there are.
func (p *Provider) noHost(at providers.Placement) error {
	zones, regions := map[string]bool{}, map[string]bool{}
	for _, h := range p.hosts {
		zones[h.Name] = true
		for set, value := range map[*map[string]bool]string{&zones: h.Zone, &regions: h.Region} {
			if value != "" {
				(*set)[value] = true
			}
		}
	}
	switch {
	case at.Zone != "" && !zones[at.Zone]:
		return unknown("placement.zone", at.Zone, slices.Sorted(maps.Keys(zones)))
	case at.Region != "" && !regions[at.Region]:
		return unknown("placement.region", at.Region, slices.Sorted(maps.Keys(regions)))
	default:
		return permanent("placement: no host is both in zone %q and in region %q", at.Zone, at.Region)
	}
}
