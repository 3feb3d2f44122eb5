package proxy

import (
	"slices"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

const (
	missesToBelieve = 2   // a single unexpected NotFound may be a lie (contract §2.2)
	handledKept     = 64  // update IDs that are remembered across runs
	timelineKept    = 50  // lines
	detailKept      = 300 // bytes of a timeline's line
	// What a caller says is cut where it comes in: a server ends a workflow whose memo
	// grows beyond its limit.
	textKept = 1024
	wordKept = 64
)

// State is everything the entity remembers; it crosses continue-as-new.
// Serialised: add fields, never rename or retype.
type State struct {
	Spec       v1.ProxySpec      `json:"spec"`
	Labels     map[string]string `json:"labels,omitempty"`
	Generation int64             `json:"generation"`
	CreatedAt  time.Time         `json:"createdAt"`
	BornOf     string            `json:"bornOf,omitempty"` // the request whose start made the proxy
	Status     v1.ProxyStatus    `json:"status"`

	Known    activities.Known `json:"known"`              // the backend's last answer
	Creating bool             `json:"creating,omitempty"` // a Create began and no ID came of it yet
	Attempt  int              `json:"attempt,omitempty"`  // of the Create; the same when it is repeated
	MadeFrom string           `json:"madeFrom,omitempty"` // specHash of that Create
	Began    time.Time        `json:"began,omitzero"`     // of making, or of deleting for good
	Seen     bool             `json:"seen,omitempty"`     // a look has shown what that Create made
	AnswerAt time.Time        `json:"answerAt,omitzero"`  // when that Create returned, or was given up
	RanAt    time.Time        `json:"ranAt,omitzero"`     // since when it runs
	Wanted   time.Time        `json:"wanted,omitzero"`    // since when an instance is waited for
	Makes    int              `json:"makes,omitempty"`    // Creates in a row whose instances did not stay
	Misses   int              `json:"misses,omitempty"`   // NotFounds in a row
	MissedAt time.Time        `json:"missedAt,omitzero"`  // the first of them
	Failures int              `json:"failures,omitempty"` // failed rounds in a row
	Removing bool             `json:"removing,omitempty"` // a Delete was accepted: NotFound is expected
	AskedAt  time.Time        `json:"askedAt,omitzero"`   // of the last Delete that was accepted
	Lapsed   int              `json:"lapsed,omitempty"`   // the Attempt whose late failure was waited for
	// Lacking is what the last Create did not find, and a Prepare fetches; that Create
	// made nothing, and the next one is the same attempt.
	Lacking string `json:"lacking,omitempty"`

	Deleting bool `json:"deleting,omitempty"`
	// SkipCleanup says why the workflow closes without waiting for the backend.
	SkipCleanup string `json:"skipCleanup,omitempty"`
	Replace     string `json:"replace,omitempty"` // why a replacement was asked for
	Patient     bool   `json:"patient,omitempty"` // waits with a reason: a hint does not wake it
	// Wait is the timer that a run did not wait for to its end, for the next run.
	Wait *pending `json:"wait,omitempty"`

	// Secret is the digest of the spec's secretRef; SecretStale asks for a new look.
	Secret      *activities.SecretDigest `json:"secret,omitempty"`
	SecretStale bool                     `json:"secretStale,omitempty"`

	HoldUntil   time.Time `json:"holdUntil,omitzero"`    // when a hold ends by itself
	Ran         bool      `json:"ran,omitempty"`         // what that Create made has run
	EverHealthy bool      `json:"everHealthy,omitempty"` // what that Create made passed a probe
	Undecided   bool      `json:"undecided,omitempty"`   // probes say nothing about it, and why
	Overdue     string    `json:"overdue,omitempty"`     // the deadline that was passed and told

	Handled    []string   `json:"handled,omitempty"` // update IDs that had their effect
	Timeline   []v1.Event `json:"timeline,omitempty"`
	Messages   int64      `json:"messages,omitempty"`  // signals taken since the start
	Published  string     `json:"published,omitempty"` // digest of what the memo shows
	Searchable attributes `json:"searchable"`
}

// pending is a timer that crosses continue-as-new. Serialised.
type pending struct {
	Pace  pace      `json:"pace"`
	Until time.Time `json:"until"`
}

// unresolved reports whether a Create of unknown outcome stands in the way. Doing it
// again would settle it, except where its instance is no longer wanted.
func (s State) unresolved() bool { return s.Creating && (s.Deleting || !s.current()) }

// current reports whether what was made, or is being made, is of the wanted spec. As
// long as the content of a secret is not known, nothing speaks against it.
func (s State) current() bool {
	return !s.digestKnown() || madeFrom(s.MadeFrom, s.Spec, s.userData())
}

// digestKnown reports whether the spec has no secretRef, or its content was looked at.
func (s State) digestKnown() bool {
	ref := s.Spec.CloudInit.SecretRef
	return ref == nil || s.Secret != nil && s.Secret.Ref == *ref
}

// userData returns the digest of the spec's user-data; empty for none.
func (s State) userData() string {
	if digest, stands := s.Spec.CloudInit.StandsFor(); stands {
		return digest
	}
	switch ref := s.Spec.CloudInit.SecretRef; {
	case ref == nil && len(s.Spec.CloudInit.Bytes()) == 0:
		return ""
	case ref == nil:
		return v1.Digest(s.Spec.CloudInit.Bytes())
	case s.digestKnown():
		return s.Secret.SHA256
	default:
		return ""
	}
}

// needsDigest reports whether the content of the spec's secretRef has to be looked at.
func (s State) needsDigest() bool {
	return s.Spec.CloudInit.SecretRef != nil && !s.Deleting && (s.SecretStale || !s.digestKnown())
}

// unwanted says why the instance has to go; empty when it may stay.
func (s State) unwanted(inst *providers.Instance) string {
	switch inst.State {
	case providers.StateRunning, providers.StateProvisioning:
	case providers.StateTerminated:
		return v1.ReasonInstanceTerminated
	case providers.StateStopped:
		return v1.ReasonInstanceStopped
	default: // a word that is not in the contract is Stopped, too
		return v1.ReasonInstanceStopped
	}
	if s.Removing || s.Replace != "" || !s.current() {
		return v1.ReasonReplacing
	}
	return ""
}

// latched reports whether the proxy waits for something that another configuration
// of its provider may mend. LatchedOn finds the same ones from outside.
func (s State) latched() bool {
	switch s.Status.Phase {
	case v1.PhaseBlocked:
		return true
	case v1.PhaseDeleting:
		return slices.Contains(LatchedReasons(), s.reason())
	default:
		return false
	}
}

// phase is where the proxy is while nothing is done.
func (s State) phase() v1.Phase {
	switch {
	case s.Deleting:
		return v1.PhaseDeleting
	case s.Removing:
		return v1.PhaseReplacing
	case s.Status.ProviderID == "":
		return v1.PhasePending
	case s.Known.State == providers.StateRunning && s.Known.IP != "":
		return v1.PhaseRunning
	default:
		return v1.PhaseProvisioning
	}
}

// beginCreate forgets the former instance and remembers that a Create is out. It is
// the same attempt as long as the outcome of the one before is unknown.
func (s *State) beginCreate(now time.Time) {
	if !s.Creating && s.Lacking == "" || !s.current() {
		s.Attempt++
		s.Makes++
		s.Began, s.Overdue = now, ""
	}
	s.forget()
	s.Seen, s.AnswerAt, s.RanAt, s.Ran, s.EverHealthy = false, time.Time{}, time.Time{}, false, false
	s.Creating, s.MadeFrom, s.Replace = true, specHash(s.Spec, s.userData()), ""
}

// forget drops what is known not to be there.
func (s *State) forget() {
	s.Status.ProviderID, s.Known = "", activities.Known{}
	s.Status.InstanceCreatedAt, s.Status.Healthy, s.Undecided = time.Time{}, nil, false
	s.Creating, s.Removing, s.Misses, s.AskedAt = false, false, 0, time.Time{}
	s.MissedAt, s.Lacking = time.Time{}, ""
	s.Status.DropCondition(v1.ConditionOpenProxy) // another instance may have other rules
}

// note adds one line to the timeline.
func (s *State) note(e v1.Event) {
	e.Detail = brief(e.Detail, detailKept)
	s.Timeline = lastOf(append(s.Timeline, e), timelineKept)
}

// once reports whether an update ID is new, and remembers it.
func (s *State) once(id string) bool {
	if slices.Contains(s.Handled, id) {
		return false
	}
	s.Handled = lastOf(append(s.Handled, id), handledKept)
	return true
}

// brief cuts a text to so many bytes, between two characters.
func brief(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func lastOf[T any](all []T, n int) []T { return slices.Clone(all[max(0, len(all)-n):]) }
