package gcefake

// deleteInstance is instances.delete. Deletion protection refuses it (case
// gcp-delete-400-protected). Asked again while it is under way, it is another
// operation, which ends with 404 when the instance is gone: case gcp-op-delete-404.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/delete
func deleteInstance(c *call) (any, error) {
	if op, err := c.repeated(); op != nil || err != nil {
		return opMessage(op), err
	}
	i, err := c.find()
	if err != nil {
		return nil, err
	}
	if i.msg.GetDeletionProtection() {
		return nil, Captured("delete-400-protected")
	}
	i.deletes++
	if err := c.stormy(i); err != nil {
		return nil, err
	}
	t := task{kind: "delete", on: i.key, in: "instances", id: i.msg.Id, took: c.pace.Stopping + c.pace.Deprovisioning}
	if i.deletes > 1 {
		gone := Failed("op-delete-404", c.project, c.zone(), c.name)
		t.failed = &gone
		return c.begin(t).msg, nil
	}
	before := i.msg.GetStatus()
	t.ended = func(failed bool) { c.deleted(i, failed, before) }
	op := c.begin(t)
	if i.insert != nil && op.failure == nil {
		c.abort(i.insert, Failed("op-insert-409-deleted", "", "", ""))
	}
	c.takeDown(i)
	return op.msg, nil
}

// takeDown goes through the states of an instance that is being deleted.
func (s *Server) takeDown(i *instance) {
	i.turn++
	i.status(Stopping)
	s.then(i, s.pace.Stopping, func() {
		i.status(Deprovisioning)
		s.address(i)
	})
}

// deleted ends a delete: the instance goes with its disks, or comes back as it was.
func (s *Server) deleted(i *instance, failed bool, before string) {
	if failed {
		i.turn++
		i.deletes = 0
		i.status(before)
		s.address(i)
		return
	}
	s.remove(i)
}

// remove takes an instance away, with the disks that go with it.
// https://cloud.google.com/compute/docs/disks/modify-persistent-disk: autoDelete.
func (s *Server) remove(i *instance) {
	if s.world.instances[i.key] != i {
		return
	}
	delete(s.world.instances, i.key)
	s.write(i, false)
	for _, attached := range i.msg.GetDisks() {
		k := key{i.project, i.scope, base(attached.GetSource())}
		d, ok := s.world.disks[k]
		switch {
		case !ok:
		case attached.GetAutoDelete() && !s.leavesDisks:
			delete(s.world.disks, k)
		default:
			d.msg.Users = nil
			d.msg.LastDetachTimestamp = stamp(s.now)
		}
	}
}
