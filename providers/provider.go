// Package providers is the provider contract: four methods over one instance,
// the types they exchange and the classes of their errors. It imports only the
// standard library and knows no implementation, no workflow and no Temporal.
// Start reading at Provider; docs/provider-contract.md says who calls what, by section.
package providers

import (
	"context"
	"time"
)

// Provider keeps instances on one backend. It is safe for concurrent use, also
// for two calls about one instance: nothing above it serialises them. Every
// method returns soon after ctx ends, and every error it returns is an *Error.
type Provider interface {
	// Create returns the ID of the one instance of req.Name, and makes it if there
	// is none. Repeating it returns the same ID and makes nothing. It may return
	// before the instance runs, but never before Get can see it.
	// Meeting that name with another UID or installation is ErrPermanent, naming both.
	// Callers: the Proxy workflow, again after every crash. Contract §2.1.
	Create(ctx context.Context, req CreateRequest) (string, error)

	// Get returns the instance as the backend shows it. It returns ErrNotFound when,
	// and only when, the instance is gone: not while a delete is under way, and not
	// when the backend cannot be asked. A create that was accepted and failed later
	// is an *Error whose Op is OpCreate.
	// Callers: the Proxy workflow, which creates again after NotFound. Contract §2.2.
	Get(ctx context.Context, id string) (*Instance, error)

	// Delete asks the backend to remove the instance and everything Create made.
	// Repeating it, or deleting what is gone, returns nil. It may return before the
	// instance is gone, as long as Get still shows it.
	// Callers: the Proxy workflow until Get says NotFound; orphan GC. Contract §2.3.
	Delete(ctx context.Context, id string) error

	// ListByTag returns every instance of the configured installation that carries
	// the managed mark, each with an ID that Delete takes, its UID and CreatedAt; or
	// an error rather than a list it cannot vouch for. Leaving out is safe.
	// Callers: orphan GC, the drift sweep, and the workflow that looks for an
	// instance of its own. Contract §2.4.
	ListByTag(ctx context.Context) ([]Instance, error)
}

// State is what a backend says about an instance.
type State string

// The four states. What a provider does not recognise is StateStopped.
const (
	StateProvisioning State = "Provisioning"
	StateRunning      State = "Running"    // only with an IP
	StateStopped      State = "Stopped"    // will not come back by itself
	StateTerminated   State = "Terminated" // the same reaction, another reason
)

// Instance is one proxy host as the backend reports it, never as remembered.
type Instance struct {
	ID string `json:"id"` // opaque <location>/<name>
	IP string `json:"ip,omitempty"`
	// EgressIP is the address that targets see, where the backend knows it.
	EgressIP string `json:"egressIP,omitempty"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`   // why it is in that state, in the backend's words
	Deleting bool   `json:"deleting,omitempty"` // a delete is under way: no second one is needed

	UID          string `json:"uid,omitempty"`
	Installation string `json:"installation,omitempty"`
	Owner        string `json:"owner,omitempty"` // namespace/name of the Proxy
	SpecMark     string `json:"specMark,omitempty"`
	// CreatedAt is the backend's timestamp; zero when it cannot be read.
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// Placement is where an instance runs, on what, and from which image. A provider
// says in its guide which of the four it uses.
type Placement struct {
	Region      string `json:"region,omitempty"`
	Zone        string `json:"zone,omitempty"`
	MachineType string `json:"machineType,omitempty"`
	Image       string `json:"image,omitempty"`
}

// CreateRequest asks for one instance.
type CreateRequest struct {
	Name string // NameFromUID(UID); Create is idempotent by it
	UID  string
	// Attempt is the same for every repetition of one create and higher for a new
	// one after NotFound, so that a request ID made of it never finds an old answer.
	Attempt      int
	Installation string
	Owner        string            // namespace/name
	Labels       map[string]string // the user's; never one of the marks
	SpecMark     string            // JSON of what brings the Proxy back; no secret
	Placement    Placement
	// CloudInit is user-data, to be delivered byte for byte. It may hold secrets: it
	// never reaches a log, a span or an error; log its size.
	CloudInit []byte
	Port      int // 1 to 65535, where the proxy listens
}
