package proxy

import (
	"fmt"
	"time"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
)

// observation is one look at the backend; at most one of the first four is set. None
// is set when there was nothing to look for.
type observation struct {
	Instance     *providers.Instance
	Gone         bool
	CreateFailed *failure
	Failure      *failure

	// Secret says why the digest of the spec's secretRef is not known.
	Secret *failure
	At     time.Time
	// DeleteDue says that no Delete was accepted recently, CreateDue that another
	// instance may be made now.
	DeleteDue, CreateDue bool
}

// failure is a provider's error inside the workflow.
type failure struct {
	activities.Fault
	Look bool // it was a look, so a watch can tell when it is over
}

// settle says what an answer means for this proxy. An instance that carries another
// UID is somebody else's: ours is gone, and nothing there may be touched. One without
// a UID was ours, and nobody can tell any more. A create that failed late leaves
// nothing once a Delete was accepted.
func (s State) settle(o observation, uid string) observation {
	switch {
	case o.Instance != nil && o.Instance.UID == "":
		o.Failure = &failure{Look: true, Fault: activities.Fault{
			Class: providers.ErrPermanent,
			Text:  fmt.Sprintf("instance %s carries no UID, where %q was written", o.Instance.ID, uid),
		}}
		o.Instance = nil
	case o.Instance != nil && o.Instance.UID != uid, o.CreateFailed != nil && s.Removing:
		o.Instance, o.CreateFailed, o.Gone = nil, nil, true
	}
	return o
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
		s = s.missed(o.At)
	case o.CreateFailed != nil:
		s.Misses = 0
		s.Known = activities.Known{CreateFailed: true}
	case o.Instance != nil:
		s.Status.ProviderID, s.Creating, s.Misses, s.Seen = o.Instance.ID, false, 0, true
		if o.Instance.State != providers.StateRunning {
			s = s.rested(o.At)
		} else if s.RanAt.IsZero() {
			s.RanAt, s.Ran = o.At, true
		}
		s.Status.InstanceCreatedAt = o.Instance.CreatedAt
		s.Known = activities.KnownOf(o.Instance)
		s.Removing = s.Removing || o.Instance.Deleting // by whoever: there is no way back
	}
	return s
}

// missed counts a NotFound, if the last one that counts is long enough ago.
func (s State) missed(at time.Time) State {
	switch {
	case s.Misses == 0:
		s.Misses, s.MissedAt = 1, at
	case at.Sub(s.MissedAt) >= confirmAfter:
		s.Misses++
	}
	return s.rested(at)
}

// rested ends the time that an instance ran. One that stayed begins a new row.
func (s State) rested(at time.Time) State {
	if !s.RanAt.IsZero() && at.Sub(s.RanAt) >= stayed {
		s.Makes = 0
	}
	s.RanAt = time.Time{}
	return s
}

// believes reports whether a NotFound may be acted on: it was asked for by a Delete,
// or it is not the first in a row and the backend had time to show what it made.
func (s State) believes(at time.Time) bool {
	return s.Removing || s.Misses >= missesToBelieve && !s.settling(at)
}

// settling reports whether a Create that may have worked was so recent that the
// backend may still hide what it made.
func (s State) settling(at time.Time) bool {
	return !s.Seen && !s.AnswerAt.IsZero() && at.Sub(s.AnswerAt) < settleFor
}

// createDue reports whether another instance may be made: at once, unless the last
// ones did not stay.
func (s State) createDue(at time.Time) bool {
	if s.Makes < 2 || s.Creating || s.Lacking != "" {
		return true
	}
	return at.Sub(s.Began) >= doubled(firstRemake, longestRemake, s.Makes-1)
}
