package gcefake

import (
	"errors"
	"net/http"
	"time"
)

// Call is a request that the server has had.
type Call struct {
	Method string // as the reference names it: instances.insert
	Zone   string // "" for what is not of a zone
	Name   string // of the resource; "" for a collection, and where the body names it
	Status int    // 0: the connection was cut off
	At     time.Time
}

// serve is the way of a request: troubles before it, the handler, troubles after it.
func (s *Server) serve(method string, handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := s.newCall(r, method)
		if err != nil {
			s.reply(w, &call{method: method}, nil, err)
			return
		}
		before, after := s.meets(c)
		if before != nil && !before.pass(s, w, r, c) {
			return
		}
		out, err := s.act(r, c, handle)
		if after != nil && !after.pass(s, w, r, c) {
			return
		}
		s.reply(w, c, out, err)
	}
}

// act runs the handler, and renders its result while nobody else can change it.
func (s *Server) act(r *http.Request, c *call, handle handler) ([]byte, error) {
	c.now = s.enter()
	defer s.mu.Unlock()
	if err := s.admits(r, c); err != nil {
		return nil, err
	}
	out, err := handle(c)
	if err != nil {
		return nil, err
	}
	return encode(out)
}

func (s *Server) reply(w http.ResponseWriter, c *call, body []byte, err error) {
	answer := Answer{Status: http.StatusOK, ContentType: jsonType, Body: body}
	if err != nil {
		if refused, ok := errors.AsType[Answer](err); ok {
			answer = refused
		} else {
			answer = refusal(http.StatusInternalServerError, "backendError", "%v", err)
		}
	}
	s.note(c, answer.Status)
	answer.send(w)
}

// note keeps a call for Calls and Count.
func (s *Server) note(c *call, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = append(s.journal, Call{c.method, c.zone(), c.name, status, c.now})
}

// Calls returns what the server was asked, in the order of its answers.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call{}, s.journal...)
}

// Count says how often a method was called, whatever came of it.
func (s *Server) Count(method string) int {
	n := 0
	for _, c := range s.Calls() {
		if c.Method == method {
			n++
		}
	}
	return n
}

// admits says what holds for every call: its project and its zone are there, its
// credential is taken, its rate is within the limit.
func (s *Server) admits(r *http.Request, c *call) error {
	for _, check := range []func(*http.Request, *call) error{
		s.credential, s.known, s.reachable, s.permitted, s.withinRate,
	} {
		if err := check(r, c); err != nil {
			return err
		}
	}
	return nil
}

// known checks the names in the address: cases gcp-get-404-project, gcp-get-400-unknown-zone.
func (s *Server) known(_ *http.Request, c *call) error {
	if !s.world.projects[c.project] && !s.world.publishes(c.project) {
		return Captured("get-404-project").About(c.project, "", "")
	}
	if zone := c.zone(); zone != "" && !s.world.zones[zone] {
		return invalidField("zone", zone, "Unknown zone.")
	}
	if region, ok := cutScope(c.scope, "regions/"); ok && !s.world.regions()[region] {
		return invalidField("region", region, "Unknown region.")
	}
	return nil
}
