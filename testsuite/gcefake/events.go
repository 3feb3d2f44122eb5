package gcefake

import (
	"sort"
	"time"
)

// agenda is what will happen, in the order of its times; what is due at the same time
// keeps the order in which it was planned.
type agenda struct {
	due []event
	now time.Time // of what is happening
}

type event struct {
	at time.Time
	do func()
}

func (a *agenda) plan(at time.Time, do func()) {
	i := sort.Search(len(a.due), func(i int) bool { return a.due[i].at.After(at) })
	a.due = append(a.due, event{})
	copy(a.due[i+1:], a.due[i:])
	a.due[i] = event{at: at, do: do}
}

// settle does what is due by now. What an event plans may be due, too.
func (a *agenda) settle(now time.Time) {
	for len(a.due) > 0 && !a.due[0].at.After(now) {
		next := a.due[0]
		a.due = a.due[1:]
		a.now = next.at
		next.do()
	}
	a.now = now
}
