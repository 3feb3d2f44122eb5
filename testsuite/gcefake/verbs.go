package gcefake

import (
	"net/http"
	"strconv"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
)

// notReady is the answer to what the state of an instance does not allow.
// https://cloud.google.com/compute/docs/reference/rest/v1/errors, RESOURCE_NOT_READY
func notReady(i *instance) Answer {
	return refusal(http.StatusBadRequest, "resourceNotReady", "The resource '%s' is not ready", i.path("instances"))
}

// verb is a method that changes an instance within an operation.
func (c *call) verb(kind string, allowed func(*instance) bool, do func(*instance) (took task)) (any, error) {
	if op, err := c.repeated(); op != nil || err != nil {
		return opMessage(op), err
	}
	i, err := c.find()
	if err != nil {
		return nil, err
	}
	if !allowed(i) {
		return nil, notReady(i)
	}
	t := do(i)
	t.kind, t.on, t.in, t.id = kind, i.key, "instances", i.msg.Id
	return c.begin(t).msg, nil
}

// stopInstance is instances.stop: TERMINATED is stopped, with its name and its disks.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/stop
func stopInstance(c *call) (any, error) {
	return c.verb("stop", func(i *instance) bool { return i.is(Running, Staging, Provisioning) },
		func(i *instance) task {
			c.halt(i, Stopping, Terminated, nil)
			return task{took: c.pace.Stopping}
		})
}

// startInstance is instances.start and instances.resume.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/start
func startInstance(c *call) (any, error) {
	return c.verb("start", func(i *instance) bool { return i.is(Terminated, Stopped, Suspended) },
		func(i *instance) task {
			c.boot(i)
			return task{took: c.pace.Provisioning + c.pace.Staging}
		})
}

// suspendInstance is instances.suspend.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/suspend
func suspendInstance(c *call) (any, error) {
	return c.verb("suspend", func(i *instance) bool { return i.is(Running) },
		func(i *instance) task {
			c.halt(i, Suspending, Suspended, nil)
			return task{took: c.pace.Stopping}
		})
}

// setLabels is instances.setLabels: all labels at once, by the fingerprint of those
// that are there.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/setLabels
func setLabels(c *call) (any, error) {
	var req computepb.InstancesSetLabelsRequest
	if err := c.read(&req); err != nil {
		return nil, err
	}
	if op, err := c.repeated(); op != nil || err != nil {
		return opMessage(op), err
	}
	i, err := c.find()
	if err != nil {
		return nil, err
	}
	if req.GetLabelFingerprint() != i.msg.GetLabelFingerprint() {
		return nil, stalePrint("Labels")
	}
	if err := checkLabels(req.GetLabels()); err != nil {
		return nil, err
	}
	return c.verb("setLabels", func(*instance) bool { return true }, func(i *instance) task {
		i.msg.Labels, i.msg.LabelFingerprint = req.GetLabels(), fingerprint(c.nextID())
		return task{}
	})
}

// protect is instances.setDeletionProtection; without the parameter it is on.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/setDeletionProtection
func protect(c *call) (any, error) {
	on, err := strconv.ParseBool(c.query.Get("deletionProtection"))
	if err != nil {
		on = true
	}
	return c.verb("setDeletionProtection", func(*instance) bool { return true }, func(i *instance) task {
		i.msg.DeletionProtection = proto.Bool(on)
		return task{}
	})
}

// testPermissions names those of the asked permissions that Forbid has not taken. An
// instance that is not there is 404; the project's is Resource Manager's method.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/testIamPermissions
func testPermissions(c *call) (any, error) {
	var req computepb.TestPermissionsRequest
	if err := c.read(&req); err != nil {
		return nil, err
	}
	if c.name != "" {
		if _, err := c.find(); err != nil {
			return nil, err
		}
	}
	out := &computepb.TestPermissionsResponse{}
	for _, p := range req.GetPermissions() {
		if !c.forbidden[p] {
			out.Permissions = append(out.Permissions, p)
		}
	}
	return out, nil
}
