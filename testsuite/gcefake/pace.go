package gcefake

import "time"

// Pace is how long the server takes. Zero is at once: done by the next request.
type Pace struct {
	Pending time.Duration // an operation waits in PENDING
	Running time.Duration // and then runs
	// A new instance is PROVISIONING, then STAGING, then RUNNING. Times run from the
	// insert, so an operation may be DONE before its instance runs, or after.
	// https://cloud.google.com/compute/docs/instances/instance-lifecycle
	Provisioning time.Duration
	Staging      time.Duration
	Address      time.Duration // an instance runs, and has its external address that much later
	// An instance that is stopped is STOPPING, one that is deleted is DEPROVISIONING
	// after that. Both have the name, and count for quotas.
	Stopping       time.Duration
	Deprovisioning time.Duration
	// What was inserted is not seen by get, and by lists, for so long.
	GetLag  time.Duration
	ListLag time.Duration
	// Retention is how long an operation is kept once it is DONE; 0 is for ever.
	// https://cloud.google.com/compute/docs/reference/rest/v1/zoneOperations/get: a
	// limited time, which it does not tell.
	Retention time.Duration
}
