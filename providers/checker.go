package providers

import "context"

// Checker is an optional interface, found with As: it tells whether the backend
// could be used right now. It never fails as a whole, returns soon after ctx
// ends, and returns one entry per target in a stable order. Contract §8.
type Checker interface {
	Check(ctx context.Context) []TargetStatus
}

// TargetStatus is the state of one thing that can fail alone: an API server, a
// project, a host.
type TargetStatus struct {
	Target  string            `json:"target"`
	Ready   bool              `json:"ready"`
	Reason  string            `json:"reason"` // one of the Reason constants, or a documented one
	Message string            `json:"message,omitempty"`
	Details map[string]string `json:"details,omitempty"` // facts for triage: versions, capacity
	// Left is how much is left of what there is a quota of, by its name: for metrics.
	Left map[string]float64 `json:"-"`
}

// The reasons that all providers share.
const (
	ReasonReachable    = "Reachable"
	ReasonTimeout      = "Timeout"
	ReasonUnreachable  = "Unreachable"
	ReasonUnauthorized = "Unauthorized"
	ReasonForbidden    = "Forbidden"
	ReasonAPIError     = "APIError"
)
