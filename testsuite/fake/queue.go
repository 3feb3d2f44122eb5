package fake

import (
	"slices"

	"github.com/egressfleet/egressfleet/providers"
)

// Call is one call that has ended.
type Call struct {
	Op       string // one of the Op constants
	ID       string // empty for a list
	Attempt  int    // of a create
	Class    providers.Class
	Err      error // what the caller got; nil when it went well
	Panicked bool
}

// NextErr lets the next calls of an operation fail, one with each error, before the
// backend sees them; nil lets one pass. A Class is an error: NextErr(OpGet,
// ErrNotFound) is one false NotFound.
func (f *Faults) NextErr(op string, errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range errs {
		if class, ok := err.(providers.Class); ok { //nolint:errorlint // a bare class, not one in a chain
			err = Failing(class)(nil)
		}
		f.next[op] = append(f.next[op], err)
	}
}

// Recorded returns every call, in the order in which they ended.
func (f *Faults) Recorded() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ended)
}

func (f *Faults) record(at target, err error, panicked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, Call{at.op, at.id, at.attempt, providers.ClassOf(err), err, panicked})
}

// sight is what a reader of the backend does not see though it is there.
type sight struct {
	looks   int             // at which a new instance is not seen yet
	unseen  map[string]int  // how many are left, by ID
	made    map[string]bool // IDs that are no longer new
	leftOut map[string]bool
}

func (s *sight) clear() {
	s.looks = 0
	clear(s.unseen)
	clear(s.leftOut)
}

// HideNew lets Get say NotFound of each new instance, and lists leave it out, for that
// many looks: eventual consistency of a provider that does not wait for it.
func (f *Faults) HideNew(looks int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks = looks
}

// PartialList lets lists leave instances out, without a word, until Heal.
func (f *Faults) PartialList(ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		f.leftOut[id] = true
	}
}

func (f *Faults) hideNew(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.made[id] {
		f.made[id] = true
		f.unseen[id] = f.looks
	}
}

// forget makes the next instance of that ID a new one.
func (f *Faults) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.made, id)
	delete(f.unseen, id)
}

// missed reports whether this look does not see an instance.
func (f *Faults) missed(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unseen[id] == 0 {
		return false
	}
	f.unseen[id]--
	return true
}

// shown takes out of a list what is not seen.
func (f *Faults) shown(all []providers.Instance) []providers.Instance {
	return slices.DeleteFunc(all, func(i providers.Instance) bool {
		f.mu.Lock()
		out := f.leftOut[i.ID]
		f.mu.Unlock()
		return f.missed(i.ID) || out
	})
}
