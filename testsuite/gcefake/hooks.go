package gcefake

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

// Place is where something is.
type Place struct{ Project, Zone, Name string }

// Instance is one machine of the server in a test's hand. What a test does to it is
// done at once; the machine need not be seen by get yet.
type Instance struct {
	s *Server
	k key
}

// Instance returns the machine of that place. Methods panic where there is none.
func (s *Server) Instance(at Place) Instance {
	return Instance{s, key{cmp.Or(at.Project, CapturedProject), "zones/" + at.Zone, at.Name}}
}

func (i Instance) do(what func(*instance)) {
	i.s.enter()
	defer i.s.mu.Unlock()
	in, ok := i.s.world.instances[i.k]
	if !ok {
		panic("gcefake: there is no instance " + i.k.path("instances"))
	}
	what(in)
}

// Message returns the machine as get does.
func (i Instance) Message() (msg *computepb.Instance) {
	i.do(func(in *instance) { msg = proto.CloneOf(in.msg) })
	return msg
}

// State puts the machine into a state, one that the API does not have, too; it stays
// there until a call changes it.
func (i Instance) State(state string) {
	i.do(func(in *instance) {
		in.turn++
		in.status(state)
		i.s.address(in)
	})
}

// PowerOff stops the machine, as its owner does by hand.
func (i Instance) PowerOff() {
	i.do(func(in *instance) { i.s.halt(in, Stopping, Terminated, nil) })
}

// Boot starts it again, as what revives a preempted machine does.
func (i Instance) Boot() { i.do(i.s.boot) }

// Preempt takes a spot machine back: it stops, or is deleted if its
// instanceTerminationAction says so, by an operation of the system.
// https://cloud.google.com/compute/docs/instances/spot#preemption
func (i Instance) Preempt() {
	i.try(func(in *instance) {
		c := &call{Server: i.s, method: "system.preempt", project: in.project, scope: in.scope, name: in.name, now: i.s.now}
		op := c.begin(task{
			kind: "compute.instances.preempted", on: in.key, in: "instances", id: in.msg.Id, took: i.s.pace.Stopping,
		})
		op.msg.User = proto.String("system")
		op.msg.StatusMessage = proto.String("Instance was preempted.")
		var gone func()
		if in.msg.GetScheduling().GetInstanceTerminationAction() == "DELETE" {
			gone = func() { i.s.remove(in) }
		}
		i.s.halt(in, Stopping, Terminated, gone)
	})
}

// Protect switches the machine's deletion protection.
func (i Instance) Protect(on bool) { i.do(func(in *instance) { in.msg.DeletionProtection = &on }) }

// Silence takes the machine's external address, or gives it back.
func (i Instance) Silence(on bool) {
	i.do(func(in *instance) {
		in.addressOff = on
		i.s.address(in)
	})
}

// Vanish takes the machine and its disks away, with no operation that says so. One that
// has gone meanwhile is what was wanted.
func (i Instance) Vanish() { i.try(i.s.remove) }

// try does something to the machine, if it is still there.
func (i Instance) try(what func(*instance)) {
	i.s.enter()
	defer i.s.mu.Unlock()
	if in, ok := i.s.world.instances[i.k]; ok {
		what(in)
	}
}

// Hide keeps the machine from get and from lists for so long: a false 404.
func (i Instance) Hide(d time.Duration) {
	i.do(func(in *instance) { in.seen, in.listed = i.s.now.Add(d), i.s.now.Add(d) })
}

// Plant puts a machine there that nobody inserted, with its disk. What msg does not
// say is as of an insert; its creationTimestamp stays.
func (s *Server) Plant(at Place, msg *computepb.Instance) Instance {
	s.enter()
	defer s.mu.Unlock()
	c := s.by(at)
	planted := proto.CloneOf(msg)
	planted.Name = &at.Name
	if planted.MachineType == nil {
		planted.MachineType = proto.String(c.scope + "/machineTypes/e2-small")
	}
	if planted.NetworkInterfaces == nil {
		planted.NetworkInterfaces = []*computepb.NetworkInterface{{AccessConfigs: []*computepb.AccessConfig{{}}}}
	}
	d := s.makeDisk(c.key(), c.diskKind(), 10, "")
	planted.Disks = []*computepb.AttachedDisk{{
		Boot: proto.Bool(true), AutoDelete: proto.Bool(true), Source: d.msg.SelfLink, DiskSizeGb: d.msg.SizeGb,
	}}
	i := c.newInstance(planted)
	if msg.CreationTimestamp != nil {
		planted.CreationTimestamp = msg.CreationTimestamp
	}
	d.msg.Users = []string{i.link("instances")}
	s.world.disks[d.key], s.world.instances[i.key] = d, i
	s.write(i, true)
	i.seen, i.listed = s.now, s.now
	i.status(Running)
	s.address(i)
	return Instance{s, i.key}
}

// PlantDisk puts a disk there that no instance has, such as a failed insert leaves.
func (s *Server) PlantDisk(at Place, msg *computepb.Disk) {
	s.enter()
	defer s.mu.Unlock()
	c := s.by(at)
	d := s.makeDisk(c.key(), c.diskKind(), 10, "")
	proto.Merge(d.msg, msg)
	d.msg.Name = &at.Name
	s.world.disks[d.key] = d
}

func (s *Server) by(at Place) *call {
	project := cmp.Or(at.Project, CapturedProject)
	return &call{Server: s, method: "test", project: project, scope: "zones/" + at.Zone, name: at.Name, now: s.now}
}

func (c *call) diskKind() string {
	return fmt.Sprintf("%sprojects/%s/%s/diskTypes/pd-standard", host, c.project, c.scope)
}

// Instances are all machines, seen or not, in the order of their places.
func (s *Server) Instances() (all []*computepb.Instance) {
	s.enter()
	defer s.mu.Unlock()
	for _, i := range s.world.instances {
		all = append(all, proto.CloneOf(i.msg))
	}
	slices.SortFunc(all, func(a, b *computepb.Instance) int { return cmp.Compare(a.GetSelfLink(), b.GetSelfLink()) })
	return all
}

// Disks are all disks, in the order of their places.
func (s *Server) Disks() (all []*computepb.Disk) {
	s.enter()
	defer s.mu.Unlock()
	for _, d := range s.world.disks {
		all = append(all, proto.CloneOf(d.msg))
	}
	slices.SortFunc(all, func(a, b *computepb.Disk) int { return cmp.Compare(a.GetSelfLink(), b.GetSelfLink()) })
	return all
}

// Firewalls are the rules of all projects, in the order of their places.
func (s *Server) Firewalls() (all []*computepb.Firewall) {
	s.enter()
	defer s.mu.Unlock()
	for _, f := range s.world.firewalls {
		all = append(all, proto.CloneOf(f))
	}
	slices.SortFunc(all, func(a, b *computepb.Firewall) int { return cmp.Compare(a.GetSelfLink(), b.GetSelfLink()) })
	return all
}

// Guest returns what the metadata server of a machine says for a key, as user-data.
// https://cloud.google.com/compute/docs/metadata/overview
func (i Instance) Guest(key string) (value string, ok bool) {
	i.do(func(in *instance) {
		for _, item := range in.msg.GetMetadata().GetItems() {
			if item.GetKey() == key {
				value, ok = item.GetValue(), true
			}
		}
	})
	return value, ok
}
