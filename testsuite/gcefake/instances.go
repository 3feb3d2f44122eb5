package gcefake

import (
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

// The states of an instance.
// https://cloud.google.com/compute/docs/instances/instance-lifecycle
const (
	Pending        = "PENDING"
	Provisioning   = "PROVISIONING"
	Staging        = "STAGING"
	Running        = "RUNNING"
	PendingStop    = "PENDING_STOP"
	Stopping       = "STOPPING"
	Deprovisioning = "DEPROVISIONING"
	Stopped        = "STOPPED"
	Terminated     = "TERMINATED"
	Suspending     = "SUSPENDING"
	Suspended      = "SUSPENDED"
	Repairing      = "REPAIRING"
)

// instance is a virtual machine, and what is under way about it.
type instance struct {
	key
	msg        *computepb.Instance
	serial     uint64    // by which its addresses are made
	seen       time.Time // from when get shows it
	listed     time.Time // from when lists show it
	insert     *operation
	turn       int // of its life: what was planned before the last turn does not come
	deletes    int // how often it was asked for, since the first
	addressOff bool
}

func (i *instance) status(s string) { i.msg.Status = &s }

func (i *instance) is(states ...string) bool {
	for _, s := range states {
		if i.msg.GetStatus() == s {
			return true
		}
	}
	return false
}

// then plans the next turn of the instance's life, unless another comes first.
func (s *Server) then(i *instance, in time.Duration, do func()) {
	turn := i.turn
	s.plan(s.now.Add(in), func() {
		if i.turn == turn && s.world.instances[i.key] == i {
			do()
		}
	})
}

// boot takes an instance to RUNNING, and to its external address.
func (s *Server) boot(i *instance) {
	i.turn++
	i.status(Provisioning)
	s.then(i, s.pace.Provisioning, func() { i.status(Staging) })
	s.then(i, s.pace.Provisioning+s.pace.Staging, func() {
		i.status(Running)
		i.msg.LastStartTimestamp = stamp(s.now)
	})
	s.then(i, s.pace.Provisioning+s.pace.Staging+s.pace.Address, func() { s.address(i) })
}

// address gives the external addresses, or takes them: they are ephemeral, so a
// stopped instance has none.
// https://cloud.google.com/compute/docs/ip-addresses/configure-static-external-ip-address
func (s *Server) address(i *instance) {
	for n, nic := range i.msg.GetNetworkInterfaces() {
		for _, access := range nic.GetAccessConfigs() {
			access.NatIP = nil
			if !i.addressOff && i.is(Running) {
				access.NatIP = proto.String(s.external(i.serial, n))
			}
		}
	}
}

// halt takes an instance to a state in which it does not run.
func (s *Server) halt(i *instance, over, to string, done func()) {
	i.turn++
	i.status(over)
	s.then(i, s.pace.Stopping, func() {
		i.turn++
		i.status(to)
		s.address(i)
		if to == Suspended {
			i.msg.LastSuspendedTimestamp = stamp(s.now)
		} else {
			i.msg.LastStopTimestamp = stamp(s.now)
		}
		if done != nil {
			done()
		}
	})
}

// find returns the instance of a call, as far as get may see it.
func (c *call) find() (*instance, error) {
	i, ok := c.world.instances[c.key()]
	if !ok || c.now.Before(i.seen) {
		return nil, notFound(c.key().path("instances"))
	}
	return i, nil
}

// getInstance is instances.get.
func getInstance(c *call) (any, error) {
	i, err := c.find()
	if err != nil {
		return nil, err
	}
	return i.msg, nil
}

// entries are the instances that lists show, of one zone or of all.
func (c *call) entries(scope string) []entry {
	var all []entry
	for k, i := range c.world.instances {
		if k.project == c.project && (scope == "" || k.scope == scope) && !c.now.Before(i.listed) {
			all = append(all, entry{k, i.msg})
		}
	}
	return all
}

func listInstances(c *call) (any, error) {
	return c.list("compute#instanceList", c.entries(c.scope))
}

func aggregateInstances(c *call) (any, error) {
	return c.aggregate("compute#instanceAggregatedList", "instances", c.entries(""))
}

// opMessage keeps a nil operation from becoming a message that is not nil.
func opMessage(op *operation) any {
	if op == nil {
		return nil
	}
	return op.msg
}

// body reads the resource of an insert, with the name of the call from it.
func (c *call) reads(into proto.Message, name func() string) error {
	if err := c.read(into); err != nil {
		return err
	}
	c.name = name()
	if !resourceName.MatchString(c.name) {
		return invalidField("resource.name", c.name, "Must be a match of regex '"+nameRule+"'")
	}
	return nil
}

func badRequest(format string, args ...any) Answer {
	return refusal(http.StatusBadRequest, "invalid", format, args...)
}

// short is a URL or a part of one, without the host: projects/p/zones/z/... or zones/z/...
func short(link string) string {
	if _, rest, ok := strings.Cut(link, "/compute/v1/"); ok {
		return rest
	}
	return link
}
