package gcefake

import (
	"net/http"
	"path"
	"slices"
	"time"
)

// Fault is one trouble of calls. One of Answer, Hang, Drop and Delay says which.
type Fault struct {
	Method string // a pattern as of path.Match: instances.insert, instances.*; "" is every method
	Zone   string // "" is everywhere
	Name   string // of the resource; "" is each
	When   func(Call) bool
	Times  int  // how many calls; 0: until it is removed
	After  bool // the server acts first, and only its answer is lost

	Answer Answer        // instead of the server's
	Hang   bool          // no answer, until the fault is removed or the client has gone
	Drop   bool          // the connection is cut off
	Delay  time.Duration // by the machine's clock
}

type fault struct {
	Fault
	left int
	gone chan struct{} // closed when it is removed
}

func (f *fault) fits(c Call) bool {
	return match(f.Method, c.Method) && (f.Zone == "" || f.Zone == c.Zone) &&
		(f.Name == "" || f.Name == c.Name) && (f.When == nil || f.When(c))
}

func match(pattern, method string) bool {
	ok, err := path.Match(pattern, method)
	return pattern == "" || err == nil && ok
}

// Inject makes calls fail until they were as many as the fault says, or remove is called.
func (s *Server) Inject(f Fault) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := &fault{Fault: f, left: f.Times, gone: make(chan struct{})}
	s.faults = append(s.faults, in)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(in)
	}
}

func (s *Server) drop(f *fault) {
	if i := slices.Index(s.faults, f); i >= 0 {
		s.faults = slices.Delete(s.faults, i, i+1)
		close(f.gone)
	}
}

// meets takes the first fault for a call before the server acts, and after it.
func (s *Server) meets(c *call) (before, after *fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := Call{Method: c.method, Zone: c.zone(), Name: c.name, At: s.now}
	take := func(after bool) *fault {
		for _, f := range s.faults {
			if f.After == after && f.fits(asked) {
				s.used(f)
				return f
			}
		}
		return nil
	}
	return take(false), take(true)
}

func (s *Server) used(f *fault) {
	if f.Times == 0 {
		return
	}
	if f.left--; f.left > 0 {
		return
	}
	if f.Hang { // the call that it holds goes on when it is removed
		f.Method = "no more calls"
		return
	}
	s.drop(f)
}

// pass does to a call what the fault says. It returns whether the call goes on.
func (f *fault) pass(s *Server, w http.ResponseWriter, r *http.Request, c *call) bool {
	switch {
	case f.Hang:
		select {
		case <-f.gone:
			return true
		case <-r.Context().Done():
			s.note(c, 0)
			return false
		}
	case f.Drop:
		s.note(c, 0)
		panic(http.ErrAbortHandler)
	case f.Answer.Status != 0:
		s.note(c, f.Answer.Status)
		f.Answer.About(c.project, c.zone(), c.name).send(w)
		return false
	}
	return f.wait(r)
}

func (f *fault) wait(r *http.Request) bool {
	timer := time.NewTimer(f.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.gone:
		return true
	case <-r.Context().Done():
		return false
	}
}
