package gcefake

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

// nameRule is that of all resources; see case gcp-create-400-name.
const nameRule = `(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)`

var resourceName = regexp.MustCompile("^" + nameRule + "$")

// maxMetadata is the limit of one metadata value, in characters: case
// gcp-create-400-metadata-too-large.
const maxMetadata = 256 << 10

// insertInstance is instances.insert. What can be seen at once is refused at once; what
// only the zone knows, its capacity and the quota, is found out by the operation.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/insert
func insertInstance(c *call) (any, error) {
	var msg computepb.Instance
	if err := c.reads(&msg, msg.GetName); err != nil {
		return nil, err
	}
	if op, err := c.repeated(); op != nil || err != nil {
		return opMessage(op), err
	}
	for _, check := range []func(*computepb.Instance) error{
		c.checkTaken, c.checkMachine, c.checkNetworks, c.checkMetadata, c.checkLabels,
	} {
		if err := check(&msg); err != nil {
			return nil, err
		}
	}
	disks, err := c.newDisks(&msg)
	if err != nil {
		return nil, err
	}
	if err := c.noCapacity(); err != nil {
		return nil, err
	}
	return c.accept(&msg, disks).msg, nil
}

// accept makes the instance and its disks. When the operation fails they go again,
// with the exception that LeaveDisks makes.
func (c *call) accept(msg *computepb.Instance, disks []*disk) *operation {
	i := c.newInstance(msg)
	failed := c.overQuota(i)
	for _, d := range disks {
		d.msg.Users = []string{i.link("instances")}
		c.world.disks[d.key] = d
	}
	c.world.instances[i.key] = i
	c.write(i, true)
	i.insert = c.begin(task{
		kind: "insert", on: i.key, in: "instances", id: i.msg.Id, failed: failed,
		ended: func(failed bool) {
			if failed && i.deletes == 0 {
				c.remove(i)
			}
		},
	})
	c.boot(i)
	if i.insert.failure != nil { // it gets no further
		i.turn++
	}
	return i.insert
}

// newInstance completes what the client sent, as get returns it.
func (c *call) newInstance(msg *computepb.Instance) *instance {
	i := &instance{key: c.key(), msg: msg, seen: c.now.Add(c.pace.GetLag), listed: c.now.Add(c.pace.ListLag)}
	msg.Kind, msg.Id = proto.String("compute#instance"), c.nextID()
	i.serial = msg.GetId() - firstID
	msg.CreationTimestamp, msg.SelfLink = stamp(c.now), proto.String(i.link("instances"))
	at := host + "projects/" + c.project + "/" + c.scope
	msg.Zone, msg.MachineType = &at, proto.String(at+"/machineTypes/"+base(msg.GetMachineType()))
	msg.LabelFingerprint, msg.Fingerprint = fingerprint(c.nextID()), fingerprint(c.nextID())
	if msg.Metadata == nil {
		msg.Metadata = &computepb.Metadata{}
	}
	msg.Metadata.Kind, msg.Metadata.Fingerprint = proto.String("compute#metadata"), fingerprint(c.nextID())
	if msg.Tags == nil {
		msg.Tags = &computepb.Tags{}
	}
	msg.Tags.Fingerprint = fingerprint(c.nextID())
	if msg.Scheduling == nil {
		msg.Scheduling = &computepb.Scheduling{}
	}
	if msg.Scheduling.ProvisioningModel == nil {
		msg.Scheduling.ProvisioningModel = proto.String("STANDARD")
	}
	c.plugIn(i)
	return i
}

// plugIn names the interfaces and gives them their internal addresses. The external
// ones come when the instance runs.
func (c *call) plugIn(i *instance) {
	for n, nic := range i.msg.GetNetworkInterfaces() {
		nic.Kind, nic.Name = proto.String("compute#networkInterface"), proto.String(fmt.Sprintf("nic%d", n))
		nic.NetworkIP, nic.Fingerprint = proto.String(c.internal(i.serial, n)), fingerprint(c.nextID())
		for _, access := range nic.GetAccessConfigs() {
			access.Kind, access.NatIP = proto.String("compute#accessConfig"), nil
			if access.Type == nil {
				access.Type = proto.String("ONE_TO_ONE_NAT")
			}
			if access.Name == nil {
				access.Name = proto.String("External NAT")
			}
		}
	}
}

// checkTaken: a name is taken until the instance is gone, whoever can see it.
func (c *call) checkTaken(*computepb.Instance) error {
	if _, taken := c.world.instances[c.key()]; taken {
		return alreadyExists(c.key().path("instances"))
	}
	return nil
}

// checkMachine: case gcp-create-400-machine-type.
func (c *call) checkMachine(msg *computepb.Instance) error {
	name := base(msg.GetMachineType())
	if want := c.scope + "/machineTypes/" + name; !suffixed(msg.GetMachineType(), want) {
		return invalidField("resource.machineType", msg.GetMachineType(), "The URL is malformed.")
	}
	if c.world.machines[name] == 0 {
		return invalidField("resource.machineType", c.scope+"/machineTypes/"+name,
			fmt.Sprintf("Machine type with name '%s' does not exist in zone '%s'.", name, c.zone()))
	}
	return nil
}

func (c *call) checkNetworks(msg *computepb.Instance) error {
	if len(msg.GetNetworkInterfaces()) == 0 {
		return invalidField("resource.networkInterfaces", "", "At least one network interface is required.")
	}
	for n, nic := range msg.GetNetworkInterfaces() {
		network := nic.GetNetwork()
		if network != "" && !c.world.networks[base(network)] {
			return notFound("projects/" + c.project + "/global/networks/" + base(network))
		}
		here := "regions/" + regionOf(c.zone()) + "/subnetworks/"
		if nic.GetSubnetwork() != "" && !strings.Contains(nic.GetSubnetwork(), here) {
			return invalidField(fmt.Sprintf("resource.networkInterfaces[%d].subnetwork", n), nic.GetSubnetwork(),
				"The referenced subnetwork resource cannot be found.")
		}
	}
	return nil
}

func (c *call) checkMetadata(msg *computepb.Instance) error {
	for n, item := range msg.GetMetadata().GetItems() {
		if size := len([]rune(item.GetValue())); size > maxMetadata {
			return badRequest("Value for field 'resource.metadata.items[%d].value' is too large: "+
				"maximum size %d character(s); actual size %d.", n, maxMetadata, size)
		}
	}
	return nil
}

// Labels: https://cloud.google.com/compute/docs/labeling-resources#requirements.
var (
	labelKey   = regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	labelValue = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
)

const maxLabels = 64

func (c *call) checkLabels(msg *computepb.Instance) error { return checkLabels(msg.GetLabels()) }

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return refusal(http.StatusBadRequest, "invalid", "Labels are limited to %d per resource.", maxLabels)
	}
	for k, v := range labels {
		if !labelKey.MatchString(k) {
			return invalidField("resource.labels", k, "Label keys must match the following regex: '"+labelKey.String()+"'.")
		}
		if !labelValue.MatchString(v) {
			return invalidField("resource.labels", v, "Label values must match the following regex: '"+labelValue.String()+"'.")
		}
	}
	return nil
}
