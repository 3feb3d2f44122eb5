package gcp

import (
	"cmp"
	"encoding/base64"
	"maps"
	"strconv"
	"unicode/utf8"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"

	"github.com/egressfleet/egressfleet/providers"
)

// User-data goes into one metadata value of at most 256 KiB. What is no UTF-8 is no value
// of JSON, and goes there in base64, which leaves three quarters.
// https://cloud.google.com/compute/docs/metadata/setting-custom-metadata#limitations
const (
	maxUserData       = 256 << 10
	maxBinaryUserData = maxUserData / 4 * 3

	keyUserData = "user-data"
	// keyEncoding tells cloud-init how the value is to be read.
	// https://cloudinit.readthedocs.io/en/latest/reference/datasources/gce.html
	keyEncoding = "user-data-encoding"
)

// The ports that there are.
const (
	firstPort = 1
	lastPort  = 65535
)

// checkRequest refuses what this provider can never do, before anything is called.
func checkRequest(req providers.CreateRequest) error {
	switch {
	case !resource.MatchString(req.Name):
		return permanent("name: %q is no name of Compute Engine", req.Name)
	case req.UID == "":
		return permanent(`uid: "" must be set: nobody could own the instance`)
	case req.Port < firstPort || req.Port > lastPort:
		return permanent("spec.port: %d is not between %d and %d", req.Port, firstPort, lastPort)
	}
	for key := range req.Labels {
		if providers.IsMark(key) {
			return permanent("labels: %q is kept for the marks", key)
		}
	}
	if m := req.Placement.MachineType; m != "" && !resource.MatchString(m) {
		return permanent("placement.machineType: %q is no machine type, such as e2-small", m)
	}
	return checkUserData(req.CloudInit)
}

func checkUserData(data []byte) error {
	if utf8.Valid(data) && len(data) > maxUserData {
		return permanent("cloudInit: %d bytes are more than the %d that Compute Engine takes", len(data), maxUserData)
	}
	if !utf8.Valid(data) && len(data) > maxBinaryUserData {
		return permanent("cloudInit: %d bytes that are no UTF-8 are more than the %d that Compute Engine takes of such, "+
			"since they go there in base64", len(data), maxBinaryUserData)
	}
	return nil
}

// build makes the resource that is inserted. Marks, labels and user-data are all in it,
// so that there is no moment in which an instance is nobody's.
func (p *Provider) build(req providers.CreateRequest, zone string) (*computepb.Instance, error) {
	image, err := imagePath(p.set.Project, cmp.Or(req.Placement.Image, p.set.Image))
	if err != nil {
		return nil, permanent("placement.image: %w", err)
	}
	card, err := p.card(zone)
	if err != nil {
		return nil, err
	}
	words, err := describe(req)
	if err != nil {
		return nil, err
	}
	whose := identity(p.name, req)
	types := "zones/" + zone + "/"
	return &computepb.Instance{
		Name:        &req.Name,
		MachineType: proto.String(types + "machineTypes/" + p.machineType(req)),
		Labels:      p.labels(req, whose),
		Metadata:    metadata(p.name, req),
		Tags:        &computepb.Tags{Items: []string{p.set.NetworkTag}},
		Scheduling:  scheduling(p.set.Spot),
		Disks: []*computepb.AttachedDisk{{
			Boot: proto.Bool(true), AutoDelete: proto.Bool(true),
			InitializeParams: &computepb.AttachedDiskInitializeParams{
				DiskName: &req.Name, SourceImage: &image, DiskSizeGb: &p.set.DiskSizeGb,
				DiskType: proto.String(types + "diskTypes/" + p.set.DiskType), Labels: whose, Description: &words,
			},
		}},
		NetworkInterfaces: []*computepb.NetworkInterface{card},
		ServiceAccounts:   serviceAccounts(p.set.ServiceAccount),
	}, nil
}

func (p *Provider) machineType(req providers.CreateRequest) string {
	return cmp.Or(req.Placement.MachineType, p.set.MachineType)
}

func (p *Provider) card(zone string) (*computepb.NetworkInterface, error) {
	network, err := networkPath(p.set.Project, p.set.Network)
	if err != nil {
		return nil, permanent("network: %w", err)
	}
	subnetwork, err := subnetworkPath(p.set.Project, p.set.Subnetwork, regionOf(zone))
	if err != nil {
		return nil, permanent("subnetwork: %w", err)
	}
	card := &computepb.NetworkInterface{Network: &network}
	if subnetwork != "" {
		card.Subnetwork = &subnetwork
	}
	if p.set.Addressing == addressingExternal {
		card.AccessConfigs = []*computepb.AccessConfig{{
			Name: proto.String("External NAT"), Type: proto.String("ONE_TO_ONE_NAT"),
		}}
	}
	return card, nil
}

// labels are the marks, over the labels of the configuration and of the Proxy. A label of
// a Proxy that Compute Engine does not take is left out: it is for people to sort by, and
// no reason to have no proxy.
func (p *Provider) labels(req providers.CreateRequest, whose map[string]string) map[string]string {
	all := maps.Clone(whose)
	for _, from := range []map[string]string{req.Labels, p.set.Labels} {
		for key, value := range sorted(from) {
			_, taken := all[key]
			if !taken && len(all) < mostLabels && checkLabel("labels", key, value) == nil {
				all[key] = value
			}
		}
	}
	return all
}

// metadata holds what labels cannot, and user-data.
func metadata(provider string, req providers.CreateRequest) *computepb.Metadata {
	values := map[string]string{
		providers.MarkUID:          req.UID,
		providers.MarkInstallation: req.Installation,
		providers.MarkOwner:        req.Owner,
		providers.MarkSpec:         req.SpecMark,
		markProvider:               provider,
		markPort:                   strconv.Itoa(req.Port),
	}
	if len(req.CloudInit) > 0 {
		values[keyUserData] = string(req.CloudInit)
		if !utf8.Valid(req.CloudInit) {
			values[keyUserData], values[keyEncoding] = base64.StdEncoding.EncodeToString(req.CloudInit), "base64"
		}
	}
	out := new(computepb.Metadata)
	for key, value := range sorted(values) {
		out.Items = append(out.Items, &computepb.Items{Key: &key, Value: &value})
	}
	return out
}

func serviceAccounts(email string) []*computepb.ServiceAccount {
	if email == "" {
		return nil
	}
	return []*computepb.ServiceAccount{{Email: &email, Scopes: []string{scope}}}
}

// scheduling of a spot instance lets Google stop it and keep it: what it was is then seen
// by Get, and deleted like all else.
func scheduling(spot bool) *computepb.Scheduling {
	if !spot {
		return nil
	}
	return &computepb.Scheduling{
		ProvisioningModel: proto.String(provisioningSpot), InstanceTerminationAction: proto.String("STOP"),
		AutomaticRestart: proto.Bool(false), OnHostMaintenance: proto.String("TERMINATE"),
	}
}
