package gcefake

import (
	"fmt"
	"strings"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

// disk is a persistent disk of a zone.
type disk struct {
	key
	msg *computepb.Disk
}

// newDisks makes the disks that an insert describes by initializeParams, and puts
// them in the instance as get returns them. A disk is called as its instance where it
// has no name. A name that is taken is 409 about the disk, with no instance made.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/insert, disks[]
func (c *call) newDisks(msg *computepb.Instance) ([]*disk, error) {
	if len(msg.GetDisks()) == 0 || !msg.GetDisks()[0].GetBoot() {
		return nil, badRequest("Invalid value for field 'resource.disks': ''. A boot disk is required.")
	}
	var out []*disk
	for n, attached := range msg.GetDisks() {
		d, err := c.newDisk(n, attached)
		if err != nil {
			return nil, err
		}
		params := attached.GetInitializeParams()
		d.msg.Labels, d.msg.Description = params.GetLabels(), params.Description
		attached.InitializeParams = nil // input only
		attached.Kind = proto.String("compute#attachedDisk")
		attached.Source, attached.DiskSizeGb = d.msg.SelfLink, d.msg.SizeGb
		out = append(out, d)
	}
	return out, nil
}

func (c *call) newDisk(n int, attached *computepb.AttachedDisk) (*disk, error) {
	params := attached.GetInitializeParams()
	if params == nil {
		return nil, badRequest("Invalid value for field 'resource.disks[%d]': ''. "+
			"gcefake makes disks from initializeParams only.", n)
	}
	k := key{c.project, c.scope, params.GetDiskName()}
	if k.name == "" {
		k.name = c.name
		if n > 0 {
			k.name = fmt.Sprintf("%s-%d", c.name, n)
		}
	}
	if _, taken := c.world.disks[k]; taken {
		return nil, alreadyExists(k.path("disks"))
	}
	image, err := c.image(params.GetSourceImage())
	if err != nil {
		return nil, err
	}
	size := params.GetDiskSizeGb()
	if size == 0 {
		size = image.GetDiskSizeGb()
	}
	if size < image.GetDiskSizeGb() {
		return nil, invalidField(fmt.Sprintf("resource.disks[%d].initializeParams.diskSizeGb", n), fmt.Sprint(size),
			fmt.Sprintf("Requested disk size cannot be smaller than the image size (%d GB)", image.GetDiskSizeGb()))
	}
	kind, err := c.diskType(n, params.GetDiskType())
	if err != nil {
		return nil, err
	}
	return c.makeDisk(k, kind, size, image.GetSelfLink()), nil
}

// diskType checks the type, which is a name or a URL within the zone.
func (c *call) diskType(n int, given string) (string, error) {
	name := base(given)
	if given == "" {
		name = "pd-standard"
	}
	if !strings.HasPrefix(name, "pd-") && !strings.HasPrefix(name, "hyperdisk-") {
		return "", invalidField(fmt.Sprintf("resource.disks[%d].initializeParams.diskType", n), given,
			"The referenced diskType resource cannot be found.")
	}
	return host + "projects/" + c.project + "/" + c.scope + "/diskTypes/" + name, nil
}

func (s *Server) makeDisk(k key, kind string, size int64, image string) *disk {
	d := &disk{key: k, msg: &computepb.Disk{
		Kind: proto.String("compute#disk"), Id: s.nextID(), Name: &k.name, SizeGb: &size, Type: &kind,
		Status: proto.String("READY"), CreationTimestamp: stamp(s.now), SelfLink: proto.String(k.link("disks")),
		Zone: proto.String(host + "projects/" + k.project + "/" + k.scope), LabelFingerprint: fingerprint(s.nextID()),
	}}
	if image != "" {
		d.msg.SourceImage = &image
	}
	return d
}

func (c *call) diskEntries(scope string) []entry {
	var all []entry
	for k, d := range c.world.disks {
		if k.project == c.project && (scope == "" || k.scope == scope) {
			all = append(all, entry{k, d.msg})
		}
	}
	return all
}

func getDisk(c *call) (any, error) {
	if d, ok := c.world.disks[c.key()]; ok {
		return d.msg, nil
	}
	return nil, notFound(c.key().path("disks"))
}

func listDisks(c *call) (any, error) { return c.list("compute#diskList", c.diskEntries(c.scope)) }

func aggregateDisks(c *call) (any, error) {
	return c.aggregate("compute#diskAggregatedList", "disks", c.diskEntries(""))
}

// deleteDisk is disks.delete. One that an instance uses is refused: case
// gcp-create-400-disk-in-use has the words.
// https://cloud.google.com/compute/docs/reference/rest/v1/disks/delete
func deleteDisk(c *call) (any, error) {
	if op, err := c.repeated(); op != nil || err != nil {
		return opMessage(op), err
	}
	d, ok := c.world.disks[c.key()]
	if !ok {
		return nil, notFound(c.key().path("disks"))
	}
	if users := d.msg.GetUsers(); len(users) > 0 {
		return nil, refusal(400, "resourceInUseByAnotherResource", "The disk resource '%s' is already being used by '%s'",
			d.path("disks"), short(users[0]))
	}
	return c.begin(task{kind: "delete", on: d.key, in: "disks", id: d.msg.Id, ended: func(failed bool) {
		if !failed && c.world.disks[d.key] == d {
			delete(c.world.disks, d.key)
		}
	}}).msg, nil
}
