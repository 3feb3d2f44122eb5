package gcefake

import (
	"net/http"
	"slices"
	"time"
)

// troubles are what makes the server fail, by its own rules or against them.
type troubles struct {
	faults      []*fault
	lates       []*Late
	cut         map[string]bool // zones that cannot be reached
	soldOut     map[string]Stockout
	forbidden   map[string]bool
	tokens      []string
	rates       map[string]*rate
	storm       storm
	leavesDisks bool
	pageSize    int
	addresses   func(serial uint64) string
}

func newTroubles() troubles {
	return troubles{
		cut: map[string]bool{}, soldOut: map[string]Stockout{}, forbidden: map[string]bool{},
		rates: map[string]*rate{}, pageSize: mostResults,
	}
}

// Heal removes every trouble, and lets go what a fault holds. What has failed stays so.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		close(f.gone)
	}
	addresses, tokens := s.addresses, s.tokens
	s.troubles = newTroubles()
	s.addresses, s.tokens = addresses, tokens // not a trouble, but what the server is
}

// Late is a task that is accepted and fails later.
type Late struct {
	Method  string // a pattern; "" is instances.insert
	Zone    string // "" is everywhere
	Name    string // of the resource; "" is each
	When    func(Call) bool
	Times   int // how many; 0: until it is removed
	Failure Failure
}

// FailLate lets operations fail when they are DONE. An instance of which the insert
// fails is seen until then, as case gcp-get-404-after-accepted-insert has it.
func (s *Server) FailLate(l Late) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Method == "" {
		l.Method = "instances.insert"
	}
	in := &l
	s.lates = append(s.lates, in)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lates = slices.DeleteFunc(s.lates, func(l *Late) bool { return l == in })
	}
}

// late says whether the operation of a call fails, and with what.
func (c *call) late() *Failure {
	asked := Call{Method: c.method, Zone: c.zone(), Name: c.name, At: c.now}
	for n, l := range c.lates {
		f := fault{Fault: Fault{Method: l.Method, Zone: l.Zone, Name: l.Name, When: l.When}}
		if !f.fits(asked) {
			continue
		}
		if l.Times--; l.Times == 0 {
			c.lates = slices.Delete(c.lates, n, n+1)
		}
		failure := l.Failure
		return &failure
	}
	if c.method == "instances.insert" && c.soldOut[c.zone()] == SoldOutLate {
		f := Failed("op-stockout", c.project, c.zone(), c.name)
		return &f
	}
	return nil
}

// LeaveDisks lets the disks of instances stay when their instance goes, whatever
// autoDelete says: gardener/machine-controller-manager#850.
func (s *Server) LeaveDisks() (restore func()) {
	return s.set(func(on bool) { s.leavesDisks = on })
}

// PageSize lets lists give no more than n on a page, whatever maxResults says.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/list: at most.
func (s *Server) PageSize(n int) (restore func()) {
	return s.set(func(on bool) {
		s.pageSize = mostResults
		if on {
			s.pageSize = n
		}
	})
}

// Addresses sets what the external address of the n-th instance is.
func (s *Server) Addresses(of func(n uint64) string) { s.set(func(bool) { s.addresses = of }) }

func (s *Server) set(put func(on bool)) (restore func()) {
	do := func(on bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		put(on)
	}
	do(true)
	return func() { do(false) }
}

// storm is what becomes of deletes that are sent again and again.
type storm struct{ accepts, refuses int }

// DeleteStorm lets the deletes of one instance be taken so many times, be refused with
// 403 so many times more, and from then on be answered with 404 while the instance is
// still there: case gcp-delete-403-rateLimit.
func (s *Server) DeleteStorm(accepts, refuses int) (restore func()) {
	return s.set(func(on bool) {
		s.storm = storm{}
		if on {
			s.storm = storm{accepts, refuses}
		}
	})
}

func (c *call) stormy(i *instance) error {
	switch {
	case c.storm.accepts == 0 || i.deletes <= c.storm.accepts:
		return nil
	case i.deletes <= c.storm.accepts+c.storm.refuses:
		return Captured("delete-403-rateLimit")
	}
	return Captured("delete-404").About(c.project, c.zone(), c.name)
}

// rate is a limit of calls in each whole minute.
type rate struct {
	most   int
	minute time.Time
	used   int
}

// RateLimit lets methods be called so many times in a minute of the server's clock; a
// whole minute later it is as much again. The pattern is as of Fault.Method.
// https://cloud.google.com/compute/api-quota and case gcp-get-403-rateLimit-per-minute.
func (s *Server) RateLimit(pattern string, perMinute int) (restore func()) {
	return s.set(func(on bool) {
		delete(s.rates, pattern)
		if on {
			s.rates[pattern] = &rate{most: perMinute}
		}
	})
}

func (s *Server) withinRate(_ *http.Request, c *call) error {
	for pattern, r := range s.rates {
		if !match(pattern, c.method) {
			continue
		}
		if minute := c.now.Truncate(time.Minute); minute.After(r.minute) {
			r.minute, r.used = minute, 0
		}
		if r.used++; r.used > r.most {
			return Captured("get-403-rateLimit-per-minute")
		}
	}
	return nil
}
