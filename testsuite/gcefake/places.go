package gcefake

import (
	"fmt"
	"strings"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

func usualZones() []string {
	return []string{
		"us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f",
		"europe-west1-b", "europe-west1-c", "europe-west1-d",
	}
}

// usualMachines are machine types with their CPUs.
// https://cloud.google.com/compute/docs/general-purpose-machines
func usualMachines() map[string]int32 {
	return map[string]int32{
		"e2-micro": 2, "e2-small": 2, "e2-medium": 2, "e2-standard-2": 2, "e2-standard-4": 4, "n2-standard-2": 2,
	}
}

func newWorld(o Options) world {
	w := world{
		projects: map[string]bool{}, zones: map[string]bool{}, machines: usualMachines(),
		images: map[key]*computepb.Image{}, networks: map[string]bool{"default": true},
		instances: map[key]*instance{}, disks: map[key]*disk{}, firewalls: map[key]*computepb.Firewall{},
		limits: map[quotaKey]float64{},
	}
	for _, p := range o.Projects {
		w.projects[p] = true
	}
	for _, z := range o.Zones {
		w.zones[z] = true
	}
	w.publish("debian-cloud", "debian-12", "debian-12-bookworm-v20260115", 10)
	w.publish("debian-cloud", "debian-11", "debian-11-bullseye-v20260115", 10)
	w.publish("ubuntu-os-cloud", "ubuntu-2404-lts-amd64", "ubuntu-2404-noble-amd64-v20260117", 10)
	return w
}

func (w *world) regions() map[string]bool {
	out := map[string]bool{}
	for zone := range w.zones {
		out[regionOf(zone)] = true
	}
	return out
}

// publish adds an image, as the projects of public images have them.
// https://cloud.google.com/compute/docs/images/os-details
func (w *world) publish(project, family, name string, sizeGB int64) {
	k := key{project, "global", name}
	w.images[k] = &computepb.Image{
		Kind: proto.String("compute#image"), Id: proto.Uint64(uint64(1000 + len(w.images))), Name: &name, Family: &family,
		DiskSizeGb: &sizeGB, Status: proto.String("READY"), SelfLink: proto.String(k.link("images")),
		Architecture: proto.String("X86_64"), CreationTimestamp: proto.String("2026-01-17T08:00:00.000-08:00"),
	}
}

// publishes says whether a project is one that has images.
func (w *world) publishes(project string) bool {
	for k := range w.images {
		if k.project == project {
			return true
		}
	}
	return false
}

// newest is the image of a family, the last by name.
func (w *world) newest(project, family string) *computepb.Image {
	var found *computepb.Image
	for k, image := range w.images {
		if k.project == project && image.GetFamily() == family && image.GetName() > found.GetName() {
			found = image
		}
	}
	return found
}

// image resolves the sourceImage of a disk: projects/p/global/images/name or
// projects/p/global/images/family/name, with or without the host, or without the
// project for one's own. Case gcp-create-404-image-family.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/insert
func (c *call) image(source string) (*computepb.Image, error) {
	path := short(source)
	project, rest, ok := cutImage(path)
	if !ok {
		return nil, invalidField("resource.disks[0].initializeParams.sourceImage", source, "The URL is malformed.")
	}
	if project == "" {
		project = c.project
	}
	found := c.world.images[key{project, "global", rest}]
	if family, is := strings.CutPrefix(rest, "family/"); is {
		found = c.world.newest(project, family)
	}
	if found == nil {
		return nil, notFound(fmt.Sprintf("projects/%s/global/images/%s", project, rest))
	}
	return found, nil
}

func cutImage(path string) (project, rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "global/images/"); ok {
		return "", rest, true
	}
	before, rest, ok := strings.Cut(path, "/global/images/")
	project, is := strings.CutPrefix(before, "projects/")
	return project, rest, ok && is && !strings.Contains(project, "/")
}

// suffixed says whether a URL, or a part of one, ends with a path.
func suffixed(link, path string) bool { return link == path || strings.HasSuffix(link, "/"+path) }

// internal and external make addresses of ranges that are kept for examples:
// RFC 1918, and the benchmark range of RFC 2544.
func (s *Server) internal(serial uint64, nic int) string {
	return fmt.Sprintf("10.%d.%d.%d", 128+nic, serial/250%250, 2+serial%250)
}

func (s *Server) external(serial uint64, nic int) string {
	if s.addresses != nil {
		return s.addresses(serial)
	}
	return fmt.Sprintf("198.%d.%d.%d", 18+nic%2, serial/250%250, 2+serial%250)
}

func fingerprint(id *uint64) *string {
	text := fmt.Sprintf("%011x=", *id%0xfffffffffff)
	return &text
}
