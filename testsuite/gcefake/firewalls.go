package gcefake

import (
	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Firewalls have no fingerprint in compute/v1: what is written last is kept.
// https://cloud.google.com/compute/docs/reference/rest/v1/firewalls
//
// insertFirewall is firewalls.insert.
func insertFirewall(c *call) (any, error) {
	var msg computepb.Firewall
	if err := c.reads(&msg, msg.GetName); err != nil {
		return nil, err
	}
	if op, err := c.repeated(); op != nil || err != nil {
		return opMessage(op), err
	}
	if _, taken := c.world.firewalls[c.key()]; taken {
		return nil, alreadyExists(c.key().path("firewalls"))
	}
	if err := c.checkFirewall(&msg); err != nil {
		return nil, err
	}
	k := c.key()
	msg.Kind, msg.Id = proto.String("compute#firewall"), c.nextID()
	msg.SelfLink, msg.CreationTimestamp = proto.String(k.link("firewalls")), stamp(c.now)
	if msg.Priority == nil {
		msg.Priority = proto.Int32(1000)
	}
	if msg.Direction == nil {
		msg.Direction = proto.String("INGRESS")
	}
	if msg.GetNetwork() == "" {
		msg.Network = proto.String("global/networks/default")
	}
	msg.Network = proto.String(host + "projects/" + c.project + "/global/networks/" + base(msg.GetNetwork()))
	c.world.firewalls[k] = &msg
	return c.begin(task{kind: "insert", on: k, in: "firewalls", id: msg.Id, ended: func(failed bool) {
		if failed && c.world.firewalls[k] == &msg {
			delete(c.world.firewalls, k)
		}
	}}).msg, nil
}

// checkFirewall: a rule allows or denies, in a network that is there.
func (c *call) checkFirewall(msg *computepb.Firewall) error {
	if (len(msg.GetAllowed()) == 0) == (len(msg.GetDenied()) == 0) {
		return badRequest("Invalid value for field 'resource.allowed': ''. One of allowed and denied must be given.")
	}
	if network := base(msg.GetNetwork()); network != "" && !c.world.networks[network] {
		return notFound("projects/" + c.project + "/global/networks/" + network)
	}
	for _, allowed := range msg.GetAllowed() {
		if allowed.GetIPProtocol() == "" {
			return badRequest("Invalid value for field 'resource.allowed[0].IPProtocol': ''. A protocol is required.")
		}
	}
	return nil
}

func (c *call) firewall() (*computepb.Firewall, error) {
	if f, ok := c.world.firewalls[c.key()]; ok {
		return f, nil
	}
	return nil, notFound(c.key().path("firewalls"))
}

func getFirewall(c *call) (any, error) {
	f, err := c.firewall()
	if err != nil {
		return nil, err
	}
	return f, nil
}

func listFirewalls(c *call) (any, error) {
	var all []entry
	for k, f := range c.world.firewalls {
		if k.project == c.project {
			all = append(all, entry{k, f})
		}
	}
	return c.list("compute#firewallList", all)
}

// patchFirewall is firewalls.patch: fields that are sent replace, lists as a whole.
// https://cloud.google.com/compute/docs/reference/rest/v1/firewalls/patch
func patchFirewall(c *call) (any, error) {
	return c.changeFirewall("patch", func(now, sent *computepb.Firewall) {
		sent.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			now.ProtoReflect().Set(field, value)
			return true
		})
	})
}

// updateFirewall is firewalls.update: all that the client may set is replaced.
// https://cloud.google.com/compute/docs/reference/rest/v1/firewalls/update
func updateFirewall(c *call) (any, error) {
	return c.changeFirewall("update", func(now, sent *computepb.Firewall) {
		sent.Kind, sent.Id, sent.SelfLink = now.Kind, now.Id, now.SelfLink
		sent.CreationTimestamp, sent.Name = now.CreationTimestamp, now.Name
		proto.Reset(now)
		proto.Merge(now, sent)
	})
}

func (c *call) changeFirewall(kind string, change func(now, sent *computepb.Firewall)) (any, error) {
	var sent computepb.Firewall
	if err := c.read(&sent); err != nil {
		return nil, err
	}
	if op, err := c.repeated(); op != nil || err != nil {
		return opMessage(op), err
	}
	f, err := c.firewall()
	if err != nil {
		return nil, err
	}
	if name := sent.GetName(); name != "" && name != c.name {
		return nil, invalidField("resource.name", name, "A name cannot be changed.")
	}
	changed := proto.CloneOf(f)
	change(changed, &sent)
	if err := c.checkFirewall(changed); err != nil {
		return nil, err
	}
	c.world.firewalls[c.key()] = changed
	return c.begin(task{kind: kind, on: c.key(), in: "firewalls", id: f.Id}).msg, nil
}

func deleteFirewall(c *call) (any, error) {
	if op, err := c.repeated(); op != nil || err != nil {
		return opMessage(op), err
	}
	f, err := c.firewall()
	if err != nil {
		return nil, err
	}
	k := c.key()
	return c.begin(task{kind: "delete", on: k, in: "firewalls", id: f.Id, ended: func(failed bool) {
		if !failed {
			delete(c.world.firewalls, k)
		}
	}}).msg, nil
}
