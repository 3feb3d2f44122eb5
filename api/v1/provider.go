package v1

import "time"

// ProviderList is the providers of one process, and the state of the configuration
// that they come from.
type ProviderList struct {
	Configuration ProviderConfiguration `json:"configuration"`
	Items         []Provider            `json:"items"` // by name
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
}
