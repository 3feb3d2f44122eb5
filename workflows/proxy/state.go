package proxy

import (
	"slices"
	"time"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

const (
	missesToBelieve = 2  // a single unexpected NotFound may be a lie (contract §2.2)
	handledKept     = 64 // update IDs that are remembered across runs
	timelineKept    = 50 // lines
	detailKept      = 300
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
	Misses   int              `json:"misses,omitempty"`   // NotFounds in a row
	Failures int              `json:"failures,omitempty"` // failed rounds in a row
	Removing bool             `json:"removing,omitempty"` // a Delete was accepted: NotFound is expected
	AskedAt  time.Time        `json:"askedAt,omitzero"`   // of the last Delete that was accepted
	Lapsed   int              `json:"lapsed,omitempty"`   // the Attempt whose late failure was waited for

	Deleting bool   `json:"deleting,omitempty"`
	Replace  string `json:"replace,omitempty"` // why a replacement was asked for
	Patient  bool   `json:"patient,omitempty"` // waits after a failure: a hint does not wake it

	// Secret is the digest of the spec's secretRef; SecretStale asks for a new look.
	Secret      *activities.SecretDigest `json:"secret,omitempty"`
	SecretStale bool                     `json:"secretStale,omitempty"`

	Handled    []string   `json:"handled,omitempty"` // update IDs that had their effect
	Timeline   []v1.Event `json:"timeline,omitempty"`
	Messages   int64      `json:"messages,omitempty"`  // signals taken since the start
	Published  string     `json:"published,omitempty"` // digest of what the memo shows
	Searchable attributes `json:"searchable"`
}

// observation is one look at the backend; at most one of the first four is set. None
// is set when there was nothing to look for.
type observation struct {
	Instance     *providers.Instance
	Gone         bool
	CreateFailed *failure
	Failure      *failure

	DeleteDue bool // no Delete was accepted recently
}

// failure is a provider's error inside the workflow.
type failure struct {
	activities.Fault
	Look bool // it was a look, so a watch can tell when it is over
}

// settle says what an answer means for this proxy. An instance that carries another
// UID is somebody else's: ours is gone, and nothing there may be touched. A create
// that failed late leaves nothing once a Delete was accepted.
func (s State) settle(o observation, uid string) observation {
	switch {
	case o.Instance != nil && o.Instance.UID != uid:
		return observation{Gone: true, DeleteDue: o.DeleteDue}
	case o.CreateFailed != nil && s.Removing:
		return observation{Gone: true, DeleteDue: o.DeleteDue}
	default:
		return o
	}
}

// learn returns the state after an observation. It is pure.
func (s State) learn(o observation) State {
	if o.Failure == nil {
		s.Known.Failure = ""
	}
	switch {
	case o.Failure != nil:
		s.Known.Failure = o.Failure.Class
	case o.Gone:
		s.Misses++
	case o.CreateFailed != nil:
		s.Misses = 0
		s.Known = activities.Known{CreateFailed: true}
	case o.Instance != nil:
		s.Status.ProviderID, s.Creating, s.Misses = o.Instance.ID, false, 0
		s.Status.InstanceCreatedAt = o.Instance.CreatedAt
		s.Known = activities.KnownOf(o.Instance)
		s.Removing = s.Removing || o.Instance.Deleting // by whoever: there is no way back
	}
	return s
}

// believes reports whether a NotFound may be acted on: it was asked for by a Delete,
// or it is not the first in a row.
func (s State) believes() bool { return s.Removing || s.Misses >= missesToBelieve }

// unresolved reports whether a Create of unknown outcome stands in the way. Doing it
// again would settle it, except where its instance is no longer wanted.
func (s State) unresolved() bool { return s.Creating && (s.Deleting || !s.current()) }

// current reports whether what was made, or is being made, is of the wanted spec.
func (s State) current() bool { return madeFrom(s.MadeFrom, s.Spec, s.userData()) }

// userData returns the digest of the spec's user-data; empty for none.
func (s State) userData() string {
	switch ref := s.Spec.CloudInit.SecretRef; {
	case ref == nil && len(s.Spec.CloudInit.Bytes()) == 0:
		return ""
	case ref == nil:
		return v1.Digest(s.Spec.CloudInit.Bytes())
	case s.Secret != nil && s.Secret.Ref == *ref:
		return s.Secret.SHA256
	default:
		return ""
	}
}

// needsDigest reports whether the content of the spec's secretRef has to be looked at.
func (s State) needsDigest() bool {
	ref := s.Spec.CloudInit.SecretRef
	return ref != nil && !s.Deleting && (s.SecretStale || s.Secret == nil || s.Secret.Ref != *ref)
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
	if !s.Creating || !s.current() {
		s.Attempt++
		s.Began = now
	}
	s.forget()
	s.Creating, s.MadeFrom, s.Replace = true, specHash(s.Spec, s.userData()), ""
}

// forget drops what is known not to be there.
func (s *State) forget() {
	s.Status.ProviderID, s.Known = "", activities.Known{}
	s.Status.InstanceCreatedAt, s.Status.Healthy = time.Time{}, nil
	s.Creating, s.Removing, s.Misses, s.AskedAt = false, false, 0, time.Time{}
}

// note adds one line to the timeline.
func (s *State) note(e v1.Event) {
	if len(e.Detail) > detailKept {
		e.Detail = e.Detail[:detailKept] + "…"
	}
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

func lastOf[T any](all []T, n int) []T { return slices.Clone(all[max(0, len(all)-n):]) }
