package gcefake

import (
	"slices"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

// getImage is images.get.
// https://cloud.google.com/compute/docs/reference/rest/v1/images/get
func getImage(c *call) (any, error) {
	if image, ok := c.world.images[c.key()]; ok {
		return image, nil
	}
	return nil, notFound(c.key().path("images"))
}

// getFamily is images.getFromFamily: the newest that is not deprecated.
// https://cloud.google.com/compute/docs/reference/rest/v1/images/getFromFamily
func getFamily(c *call) (any, error) {
	if image := c.world.newest(c.project, c.name); image != nil {
		return image, nil
	}
	return nil, notFound(c.key().path("images/family"))
}

func (c *call) machine(name string) *computepb.MachineType {
	k := key{c.project, c.scope, name}
	return &computepb.MachineType{
		Kind: proto.String("compute#machineType"), Name: &name, GuestCpus: proto.Int32(c.world.machines[name]),
		Zone: proto.String(c.zone()), SelfLink: proto.String(k.link("machineTypes")),
	}
}

// getMachine is machineTypes.get.
// https://cloud.google.com/compute/docs/reference/rest/v1/machineTypes/get
func getMachine(c *call) (any, error) {
	if c.world.machines[c.name] == 0 {
		return nil, notFound(c.key().path("machineTypes"))
	}
	return c.machine(c.name), nil
}

func listMachines(c *call) (any, error) {
	var all []entry
	for name := range c.world.machines {
		all = append(all, entry{key{c.project, c.scope, name}, c.machine(name)})
	}
	return c.list("compute#machineTypeList", all)
}

func (c *call) zoneMessage(name string) *computepb.Zone {
	status := "UP"
	if c.cut[name] {
		status = "DOWN"
	}
	at := host + "projects/" + c.project
	return &computepb.Zone{
		Kind: proto.String("compute#zone"), Name: &name, Status: &status,
		Region: proto.String(at + "/regions/" + regionOf(name)), SelfLink: proto.String(at + "/zones/" + name),
	}
}

// getZone is zones.get. https://cloud.google.com/compute/docs/reference/rest/v1/zones/get
func getZone(c *call) (any, error) { return c.zoneMessage(c.zone()), nil }

func listZones(c *call) (any, error) {
	var all []entry
	for name := range c.world.zones {
		all = append(all, entry{key{c.project, "", name}, c.zoneMessage(name)})
	}
	return c.list("compute#zoneList", all)
}

func (c *call) regionMessage(name string) *computepb.Region {
	at := host + "projects/" + c.project
	out := &computepb.Region{
		Kind: proto.String("compute#region"), Name: &name, Status: proto.String("UP"),
		SelfLink: proto.String(at + "/regions/" + name), Quotas: c.quotas(c.project, name),
	}
	for zone := range c.world.zones {
		if regionOf(zone) == name {
			out.Zones = append(out.Zones, at+"/zones/"+zone)
		}
	}
	slices.Sort(out.Zones)
	return out
}

// getRegion is regions.get, with the quotas of the region.
// https://cloud.google.com/compute/docs/reference/rest/v1/regions/get
func getRegion(c *call) (any, error) {
	name, _ := cutScope(c.scope, "regions/")
	return c.regionMessage(name), nil
}

func listRegions(c *call) (any, error) {
	var all []entry
	for name := range c.world.regions() {
		all = append(all, entry{key{c.project, "", name}, c.regionMessage(name)})
	}
	return c.list("compute#regionList", all)
}

// getProject is projects.get, with the quotas of the project.
// https://cloud.google.com/compute/docs/reference/rest/v1/projects/get
func getProject(c *call) (any, error) {
	return &computepb.Project{
		Kind: proto.String("compute#project"), Name: proto.String(c.project), Id: proto.Uint64(123456789012),
		SelfLink: proto.String(host + "projects/" + c.project), Quotas: c.quotas(c.project, ""),
	}, nil
}
