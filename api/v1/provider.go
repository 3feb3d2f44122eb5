package v1

import "time"

// ProviderList is the providers of one process, and the state of the configuration
// that they come from.
type ProviderList struct {
	Configuration ProviderConfiguration `json:"configuration"`
	Items         []Provider            `json:"items"` // by name
	Checks        ProviderChecks        `json:"checks"`
}

// ProviderChecks says how far the checks of the items can be relied on.
type ProviderChecks struct {
	CheckedAt time.Time `json:"checkedAt,omitzero"` // of the last round
	// FirstAt is when the first round begins or began, while none can have ended.
	FirstAt time.Time `json:"firstAt,omitzero"`
	// Error says why there is none, or why it could not be asked for just now.
	Error string `json:"error,omitempty"`
}

// ProviderCheck is what the last round of checks found of one provider.
type ProviderCheck struct {
	// Supported is false where the provider has no check, which is no failure.
	Supported bool             `json:"supported"`
	CheckedAt time.Time        `json:"checkedAt"`
	Targets   []ProviderTarget `json:"targets,omitempty"`
	// Unlisted counts the targets that are too many to list.
	Unlisted int `json:"unlisted,omitempty"`
}

// ProviderTarget is one thing at a backend that has to answer.
type ProviderTarget struct {
	Target  string            `json:"target"`
	Ready   bool              `json:"ready"`
	Reason  string            `json:"reason"`
	Message string            `json:"message,omitempty"`
	Details map[string]string `json:"details,omitempty"`
}

// ProviderConfiguration is the state of a providers file in one process.
type ProviderConfiguration struct {
	State    ConfigurationState `json:"state"`
	File     string             `json:"file"`              // its name without the folder
	LoadedAt time.Time          `json:"loadedAt,omitzero"` // of the items
	// Error says why the file as it is now is not served, and since when.
	Error string    `json:"error,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// ConfigurationState says how the items and the file belong together.
type ConfigurationState string

// The states of a configuration.
const (
	ConfigurationLoaded   ConfigurationState = "Loaded"   // the items are what the file says
	ConfigurationRetained ConfigurationState = "Retained" // the file is wrong; the items are from before
	ConfigurationFailed   ConfigurationState = "Failed"   // the file is wrong, and was never right
)

// Provider is one configured provider. Nothing of its block is shown: it may hold
// secrets.
type Provider struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Profile is the provider's answer on each axis of the contract, by the axis.
	Profile map[string]string `json:"profile,omitempty"`
	// LoadedAt is when it was constructed; later loads found it unchanged and kept it.
	LoadedAt time.Time `json:"loadedAt"`
	// Check is nil while no round of checks has asked it.
	Check *ProviderCheck `json:"check,omitempty"`
}
