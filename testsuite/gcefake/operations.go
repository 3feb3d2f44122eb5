package gcefake

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

// operation is a task. Its times are those at which the server came to it.
// https://cloud.google.com/compute/docs/api/how-tos/api-requests-responses
type operation struct {
	key
	msg     *computepb.Operation
	failure *Failure // what it will end with
	ended   func(failed bool)
}

// task is what an operation is for.
type task struct {
	kind   string // insert, delete, setLabels
	on     key
	in     string // the collection of its target
	id     *uint64
	took   time.Duration     // at least so long
	ended  func(failed bool) // when it is DONE
	failed *Failure          // unless a trouble of the server decides
}

// begin starts an operation in the scope of its target.
func (c *call) begin(t task) *operation {
	op := c.newOperation(t)
	op.failure = t.failed
	if late := c.late(); late != nil {
		op.failure = late
	}
	if id := c.query.Get("requestId"); id != "" {
		op.msg.ClientOperationId = &id
		c.requests[c.project+" "+id] = op
	}
	c.plan(c.now.Add(c.pace.Pending), func() { c.start(op) })
	c.plan(c.now.Add(max(c.pace.Pending+c.pace.Running, t.took)), func() { c.finish(op) })
	return op
}

func (s *Server) newOperation(t task) *operation {
	id := s.nextID()
	name := fmt.Sprintf("operation-%d-%016x", s.now.UnixMilli(), *id)
	op := &operation{key: key{t.on.project, t.on.scope, name}, ended: t.ended}
	op.msg = &computepb.Operation{
		Kind: proto.String("compute#operation"), Id: id, Name: &name, OperationType: &t.kind,
		Status: computepb.Operation_PENDING.Enum(), Progress: proto.Int32(0), InsertTime: stamp(s.now),
		User: proto.String("robot@" + t.on.project + ".iam.gserviceaccount.com"), TargetId: t.id,
		TargetLink: proto.String(t.on.link(t.in)), SelfLink: proto.String(op.link("operations")),
	}
	if zone, ok := cutScope(t.on.scope, "zones/"); ok {
		op.msg.Zone = proto.String(host + "projects/" + t.on.project + "/zones/" + zone)
	}
	s.operations[op.key] = op
	return op
}

func (s *Server) start(op *operation) {
	if op.msg.GetStatus() == computepb.Operation_PENDING {
		op.msg.Status = computepb.Operation_RUNNING.Enum()
		op.msg.StartTime = stamp(s.now)
	}
}

// finish ends an operation, unless something else has.
func (s *Server) finish(op *operation) {
	if op.msg.GetStatus() == computepb.Operation_DONE {
		return
	}
	s.start(op)
	op.msg.Status, op.msg.Progress = computepb.Operation_DONE.Enum(), proto.Int32(100)
	op.msg.EndTime = stamp(s.now)
	if f := op.failure; f != nil {
		op.msg.Error, op.msg.HttpErrorStatusCode, op.msg.HttpErrorMessage = f.Error, &f.Code, &f.Message
	}
	if op.ended != nil {
		op.ended(op.failure != nil)
	}
	if s.pace.Retention > 0 {
		s.plan(s.now.Add(s.pace.Retention), func() { delete(s.operations, op.key) })
	}
}

// abort ends an operation at once, with the failure.
func (s *Server) abort(op *operation, f Failure) {
	if op != nil && op.msg.GetStatus() != computepb.Operation_DONE {
		op.failure = &f
		s.finish(op)
	}
}

// getOperation is get and wait. By its name or its number, says the reference. Wait
// may return at any time, and here does at once: it "might return after zero seconds".
// https://cloud.google.com/compute/docs/reference/rest/v1/zoneOperations/wait
func getOperation(c *call) (any, error) {
	if op, ok := c.operations[c.key()]; ok {
		return op.msg, nil
	}
	for k, op := range c.operations {
		if k.project == c.project && k.scope == c.scope && strconv.FormatUint(op.msg.GetId(), 10) == c.name {
			return op.msg, nil
		}
	}
	return nil, notFound(c.key().path("operations"))
}

// listOperations lists those of one scope.
func listOperations(c *call) (any, error) {
	var all []entry
	for k, op := range c.operations {
		if k.project == c.project && k.scope == c.scope {
			all = append(all, entry{k, op.msg})
		}
	}
	return c.list("compute#operationList", all)
}

// repeated returns the operation of an earlier call with the request ID of this one.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/insert: a valid
// UUID, not the zero one; the second request is ignored.
func (c *call) repeated() (*operation, error) {
	id := c.query.Get("requestId")
	if id == "" {
		return nil, nil
	}
	if !isUUID(id) || id == "00000000-0000-0000-0000-000000000000" {
		return nil, refusal(http.StatusBadRequest, "invalid",
			"Invalid value for field 'requestId': '%s'. Must be a valid UUID other than the zero UUID.", id)
	}
	return c.requests[c.project+" "+id], nil
}
