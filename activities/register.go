// Package activities is the only room that touches the outside world on a
// workflow's behalf. It may import api/v1 and the provider contract, never a
// provider or a workflow. Start reading at Instances; errors.go is the wire.
package activities

import "go.temporal.io/sdk/worker"

// Register is the one list of activities.
func Register(r worker.ActivityRegistry, instances *Instances, more ...any) {
	r.RegisterActivity(instances)
	for _, hands := range more {
		r.RegisterActivity(hands)
	}
}
