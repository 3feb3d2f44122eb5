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

// Doubles are the machines that came while another one with the same value of a label was
// there, on its way out or not, one whose insert had yet to fail included. It is pure.
func Doubles(history []Happening, label string) (doubles []Happening) {
	there := map[string]int{}
	for _, h := range history {
		whose := h.Labels[label]
		if !h.Came {
			there[whose]--
			continue
		}
		if there[whose]++; there[whose] > 1 {
			doubles = append(doubles, h)
		}
	}
	return doubles
}

func (s *Server) write(i *instance, came bool) {
	zone, _ := cutScope(i.scope, "zones/")
	s.past = append(s.past, Happening{s.now, came, Place{i.project, zone, i.name}, maps.Clone(i.msg.GetLabels())})
}
