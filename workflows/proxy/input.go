package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Input starts a Proxy. A person gives the spec, as plain JSON:
// {"spec": {"provider": "local", "port": 3128}}.
type Input struct {
	Spec   v1.ProxySpec      `json:"spec,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`
	// UID is only given to adopt an instance that exists.
	UID string `json:"uid,omitempty"`
	// Adopt says which one, where that is known: it is looked at before anything is made.
	// The cloud-init of the spec may then be a stand-in.
	Adopt *Adoption `json:"adopt,omitempty"`
	// RequestID tells the caller of apply whether its own start made the proxy.
	RequestID string `json:"requestID,omitempty"`
	// State is only given by continue-as-new.
	State *State `json:"state,omitempty"`

	fault error // why the JSON cannot be right
}

// UnmarshalJSON keeps the fault for validate: an error from here would fail the run
// as retryable, again and again. What a person wrote may hold no unknown field; what
// another version of this workflow handed over may.
func (in *Input) UnmarshalJSON(raw []byte) error {
	type plain Input
	in.fault = json.Unmarshal(raw, (*plain)(in))
	if in.fault == nil && in.State == nil {
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		in.fault = strict.Decode((*plain)(in))
	}
	return nil
}

// validate returns nil, or an error that names the field.
func (in *Input) validate() error {
	if in.fault != nil {
		return fmt.Errorf("input: %w", in.fault)
	}
	if in.State != nil {
		return nil // it was right when the first run began
	}
	if in.UID != "" && !v1.IsName(in.UID) {
		return &v1.FieldError{Field: "uid", Value: in.UID, Problem: "is not a DNS label"}
	}
	if err := v1.ValidateLabels(in.Labels); err != nil {
		return err
	}
	if err := in.Adopt.validate(in.UID); err != nil {
		return err
	}
	if _, stands := in.Spec.CloudInit.StandsFor(); in.Spec.CloudInit.IsRedacted() && (in.Adopt == nil || !stands) {
		return &v1.FieldError{
			Field: "spec.cloudInit.inline", Value: in.Spec.CloudInit.Inline,
			Problem: "stands for a content that a new proxy does not have",
		}
	}
	return in.Spec.Validate()
}
