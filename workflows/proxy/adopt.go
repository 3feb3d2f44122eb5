package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// Adoption says which instance a new Proxy takes over. Serialised: add fields, never
// rename or retype.
type Adoption struct {
	ID       string `json:"id"`       // of the instance, which carries the UID of the input
	MadeFrom string `json:"madeFrom"` // the spec hash that it was made from
}

func (a *Adoption) validate(uid string) error {
	if a == nil || uid != "" && a.ID != "" && a.MadeFrom != "" {
		return nil
	}
	return &v1.FieldError{Field: "adopt", Value: a.ID, Problem: "needs id, madeFrom and, beside it, uid"}
}

// FromMark returns the input that brings a Proxy back from the marks of its instance. A
// mark that was not written by this workflow, or not whole, is an error that names what
// is wrong with it. Labels, health check and deadlines are in no mark.
func FromMark(provider, uid, id, mark string) (Input, error) {
	var m specMark
	if err := json.Unmarshal([]byte(mark), &m); err != nil {
		return Input{}, errors.New("spec mark: is no JSON of a spec") // what it holds is not repeated
	}
	in := Input{
		Spec: v1.ProxySpec{Provider: provider, Placement: m.Placement, Port: m.Port, CloudInit: m.CloudInit},
		UID:  uid, Adopt: &Adoption{ID: id, MadeFrom: m.SpecHash},
	}
	if err := m.validate(in.Spec); err != nil {
		return Input{}, fmt.Errorf("spec mark: %w", err)
	}
	return in, in.validate()
}

// validate returns nil for a mark that fits itself: one that does not would have its
// instance replaced.
func (m specMark) validate(spec v1.ProxySpec) error {
	of, stands := m.CloudInit.StandsFor()
	switch ref := m.CloudInit.SecretRef; {
	case m.CloudInit == v1.CloudInit{} && m.Digest == "", ref != nil && m.CloudInit.Inline+m.CloudInit.InlineBase64 == "":
	case stands && of == m.Digest:
	default:
		return fmt.Errorf("cloudInit: is neither a reference nor the stand-in of cloudInitSHA256 %q", short(m.Digest))
	}
	if !madeFrom(m.SpecHash, spec, m.Digest) {
		return fmt.Errorf("specHash: %q is not of its placement, port and cloud-init, or of a newer release",
			short(m.SpecHash))
	}
	return nil
}

// short keeps what stands where a digest should from filling a report, or telling more
// than a digest would.
func short(digest string) string {
	const enough = 12
	if len(digest) <= enough {
		return digest
	}
	return digest[:enough] + "…"
}

// adopt begins with an instance that is there: the first thing to do is to look at it.
// The attempts of the life before are not known; one that is counted in seconds is above
// all of them, so that no request ID of then is used again.
func (s *State) adopt(a Adoption, now time.Time) {
	s.Status.ProviderID, s.Status.SpecHash, s.MadeFrom = a.ID, a.MadeFrom, a.MadeFrom
	s.Attempt, s.Began, s.Seen = int(now.Unix()), now, true
	s.Status.Phase = s.phase()
	s.Status.SetCondition(now, s.adopted())
}

// unknown reports whether the content of the user-data is known by its digest only, so
// that no instance can be made.
func (s State) unknown() bool { return s.Spec.CloudInit.IsRedacted() }

// adopted is the condition of a Proxy that was brought back from marks.
func (s State) adopted() v1.Condition {
	c := v1.Condition{
		Type: v1.ConditionAdopted, Status: v1.ConditionTrue, Reason: v1.ReasonFromMarks,
		Message: "brought back from the marks of its instance, which hold no labels, health check and deadlines; " +
			"apply the spec again",
	}
	if s.unknown() {
		c.Reason = v1.ReasonCloudInitUnknown
		c.Message = "brought back from the marks of its instance, which hold no labels, health check and deadlines, " +
			"and of the cloud-init its digest only; apply the spec again before another instance is needed"
	}
	return c
}

// confirm takes note that a person has given the spec.
func (e *entity) confirm(spec v1.ProxySpec) {
	if _, adopted := e.state.Status.Condition(v1.ConditionAdopted); !adopted || spec.CloudInit.IsRedacted() {
		return
	}
	e.state.Status.DropCondition(v1.ConditionAdopted)
	e.dirty = true
}

// refuseUnmakeable refuses what would need an instance that cannot be made.
func (e *entity) refuseUnmakeable(kind string, spec v1.ProxySpec, replace bool) error {
	digest, stands := spec.CloudInit.StandsFor()
	if !stands || !replace && madeFrom(e.state.MadeFrom, spec, digest) {
		return nil
	}
	return refuse(kind, Refusal{
		"spec.cloudInit.inline", spec.CloudInit.Inline,
		"is known by its digest only, and this needs another instance; apply the spec with the content itself",
	})
}

// cannotMake is the plan where an instance is wanted and cannot be made. What is there
// stays: it may still serve, and nothing could take its place.
func cannotMake() plan {
	return plan{actionNone, v1.PhaseBlocked, v1.ReasonCloudInitUnknown, park(paceProbe)}
}

// unmakeable says why none is made, and what would help.
func (s State) unmakeable() string {
	what := "there is no instance"
	if s.Status.ProviderID != "" {
		what = "instance " + s.Status.ProviderID + " has to be replaced" + s.because()
	}
	return what + ", and none can be made: of the cloud-init only the digest is known; apply the spec again, with " +
		"its cloud-init"
}
