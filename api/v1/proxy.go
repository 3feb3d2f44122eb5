// Package v1 is the fleet's public vocabulary: the words that the HTTP API, the
// workflows and the operators share. It imports only the standard library.
// Start reading at Proxy; ProxySpec is what is asked, ProxyStatus what is true.
package v1

import "time"

// Proxy is what a person asks for and what became of it.
type Proxy struct {
	Metadata Metadata    `json:"metadata"`
	Spec     ProxySpec   `json:"spec"`
	Status   ProxyStatus `json:"status,omitzero"`
}

// Metadata names a Proxy. UID, generation and createdAt are the fleet's.
type Metadata struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// Generation counts the changes of the spec, from 1.
	Generation int64             `json:"generation,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	CreatedAt  time.Time         `json:"createdAt,omitzero"`
}

// ProxySpec is what a person asks for. Serialised in running workflows: add
// fields, never rename or retype.
type ProxySpec struct {
	// Provider is the configured name of a provider. It never changes.
	Provider    string      `json:"provider"`
	Placement   Placement   `json:"placement,omitzero"`
	CloudInit   CloudInit   `json:"cloudInit,omitzero"`
	Port        int         `json:"port"` // 1 to 65535, where the proxy listens
	HealthCheck HealthCheck `json:"healthCheck,omitzero"`
	Deadlines   Deadlines   `json:"deadlines,omitzero"`
}

// Placement is where the instance runs and on what. The provider says which of
// the four it uses.
type Placement struct {
	Region      string `json:"region,omitempty"`
	Zone        string `json:"zone,omitempty"`
	MachineType string `json:"machineType,omitempty"`
	Image       string `json:"image,omitempty"`
}

// CloudInit is the user-data of the instance; at most one field is set. It may
// hold secrets: an answer of the API never shows the content of inline.
type CloudInit struct {
	Inline       string     `json:"inline,omitempty"`
	InlineBase64 string     `json:"inlineBase64,omitempty"` // for bytes that are no text
	SecretRef    *SecretRef `json:"secretRef,omitempty"`
}

// SecretRef names one key of one secret.
type SecretRef struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// HealthCheck says how the proxy is probed and what bad health leads to.
type HealthCheck struct {
	Disabled     bool       `json:"disabled,omitempty"`
	Target       string     `json:"target,omitempty"`       // host:port instead of the provider's
	ReplaceAfter Duration   `json:"replaceAfter,omitempty"` // empty: never replaced for bad health
	ProxyAuthRef *SecretRef `json:"proxyAuthRef,omitempty"`
}

// Deadlines say when waiting becomes a condition. Passing one stops no work.
type Deadlines struct {
	Provisioning Duration `json:"provisioning,omitempty"`
	FirstHealthy Duration `json:"firstHealthy,omitempty"`
	Delete       Duration `json:"delete,omitempty"`
}

// DefaultDelete is the deadline of a removal where the spec says none.
const DefaultDelete = 30 * time.Minute

// Phase is where a Proxy is in its life.
type Phase string

// The phases, in the order that a Proxy usually meets them.
const (
	PhasePending      Phase = "Pending"      // nothing at the backend yet
	PhaseProvisioning Phase = "Provisioning" // created, not yet running with an address
	PhaseRunning      Phase = "Running"      // running with an address
	PhaseReplacing    Phase = "Replacing"    // the old instance is being removed
	PhaseBlocked      Phase = "Blocked"      // latched by a permanent error
	PhaseDeleting     Phase = "Deleting"     // being removed for good
)

// Phases returns every phase, in the order of a life.
func Phases() []Phase {
	return []Phase{PhasePending, PhaseProvisioning, PhaseRunning, PhaseReplacing, PhaseBlocked, PhaseDeleting}
}

// ProxyStatus is what the fleet last saw and what happens next. Serialised in
// running workflows: add fields, never rename or retype.
type ProxyStatus struct {
	Phase      Phase  `json:"phase,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	IP         string `json:"ip,omitempty"`
	EgressIP   string `json:"egressIP,omitempty"`
	// Healthy is absent until a probe has a verdict.
	Healthy            *bool       `json:"healthy,omitempty"`
	Held               bool        `json:"held,omitempty"` // out of discovery, not deleted
	ObservedGeneration int64       `json:"observedGeneration,omitempty"`
	SpecHash           string      `json:"specHash,omitempty"` // of the spec that the instance was made from
	Conditions         []Condition `json:"conditions,omitempty"`
	Since              time.Time   `json:"since,omitzero"`         // when the phase began
	NextAttemptAt      time.Time   `json:"nextAttemptAt,omitzero"` // when the workflow itself tries again
	InstanceCreatedAt  time.Time   `json:"instanceCreatedAt,omitzero"`
}

// Event is one line of a Proxy's timeline.
type Event struct {
	At     time.Time `json:"at"`
	Phase  Phase     `json:"phase"`
	Reason string    `json:"reason"`
	Class  string    `json:"class,omitempty"` // of the error, where there was one
	Detail string    `json:"detail,omitempty"`
}
