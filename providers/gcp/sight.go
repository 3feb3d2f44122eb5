package gcp

import (
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/egressfleet/egressfleet/providers"
)

// sight is what is seen at one place: an instance, or none, and its operations.
type sight struct {
	at       place
	instance *computepb.Instance // nil: a read does not find it
	history
}

// finding is what a sight means for a create.
type finding int

const (
	free    finding = iota // nothing is there, and nothing is under way
	ours                   // the instance is there
	foreign                // somebody else has the name
	dying                  // the instance, or what is left of it, is being removed
	pending                // an insert is under way, or is not seen yet
	failed                 // the insert of this attempt came to nothing
	spent                  // this attempt made the instance, and it is gone
)

// String is the word for lines of the log.
func (f finding) String() string {
	return [...]string{"free", "ours", "foreign", "dying", "pending", "failed", "spent"}[f]
}

// wanted is what a create looks for.
type wanted struct {
	holder    providers.Holder
	requestID string // of this attempt, at the place
}

// find tells what a place means for a create. What is not there and not coming is free,
// whatever attempts before came to.
func (s sight) find(w wanted, now time.Time) finding {
	if s.instance != nil {
		return s.met(w)
	}
	mine := s.insert != nil && s.insert.GetClientOperationId() == w.requestID
	switch {
	case s.deleting:
		return dying
	case s.inserting(now):
		return pending
	case mine && s.failed() != nil:
		return failed
	case mine:
		return spent // a second request with this ID would be answered with the first
	}
	return free
}

// met tells whose the instance is that a create met.
func (s sight) met(w wanted) finding {
	if s.holder() != w.holder {
		return foreign
	}
	if s.deleting || s.instance.GetStatus() == "DEPROVISIONING" {
		return dying
	}
	return ours
}

func (s sight) holder() providers.Holder { return holder(s.instance.GetLabels(), items(s.instance)) }

// stockout returns when the newest insert at the place, of whatever attempt, met a zone
// without capacity; the zero time when it did not.
func (s sight) stockout() time.Time {
	if f := s.failed(); f != nil && isStockout(f) {
		return timestamp(s.insert.GetEndTime())
	}
	return time.Time{}
}

// step is what a create does next.
type step struct {
	do   finding // free: insert; pending: wait; anything else: it is decided
	at   sight
	more []sight // ours: all others that are ours
}

// choose decides where a create goes on. seen is in the order in which zones are tried;
// full are the zones that have refused this very call. A zone is only inserted into when
// nothing is in any other one and nothing can still come: the zones before it have
// failed for good, and none has made it for this attempt, which a read may not see.
func choose(seen []sight, full map[string]bool, find func(sight) finding) step {
	by := map[finding][]sight{}
	for _, s := range seen {
		by[find(s)] = append(by[find(s)], s)
	}
	for _, what := range []finding{foreign, ours, dying, pending, spent} {
		if met := by[what]; len(met) > 0 {
			return step{do: what, at: met[0], more: met[1:]}
		}
	}
	return advance(seen, full, find)
}

// advance goes through the zones, where no instance is and none comes.
func advance(seen []sight, full map[string]bool, find func(sight) finding) step {
	last := step{do: failed}
	for _, s := range seen {
		switch what := find(s); {
		case what == failed && isStockout(s.failed()):
			last = step{do: failed, at: s}
		case what == failed, what == free && !full[s.at.zone]:
			return step{do: what, at: s}
		}
	}
	return last
}
