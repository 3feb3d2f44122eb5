package gcefake

import (
	"maps"
	"time"
)

// Happening is a machine that came or went. One whose insert fails late has come, and
// goes with the failure.
type Happening struct {
	At   time.Time
	Came bool
	Place
	Labels map[string]string
}

// History is what has happened, in order.
func (s *Server) History() []Happening {
	s.enter()
	defer s.mu.Unlock()
	return append([]Happening{}, s.past...)
}

func (s *Server) write(i *instance, came bool) {
	zone, _ := cutScope(i.scope, "zones/")
	s.past = append(s.past, Happening{s.now, came, Place{i.project, zone, i.name}, maps.Clone(i.msg.GetLabels())})
}
