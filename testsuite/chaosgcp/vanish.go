package main

import (
	"time"

	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// lateClock is how far the server's clock is behind. The provider believes in a loss
// without a trace two minutes after the insert, by its own clock: here after 15 seconds,
// which is still longer than a read lags by far.
const lateClock = 105 * time.Second

// behind is a clock that is so much late.
type behind time.Duration

// Now is late.
func (b behind) Now() time.Time { return time.Now().Add(-time.Duration(b)) }

// vanish takes some running instances away, with no operation that says so; preempt takes
// the others, from the other end.
func (w *world) vanish() {
	for _, i := range w.cloud.Instances() {
		if w.vanished == vanishing {
			return
		}
		if i.GetStatus() == gcefake.Running {
			w.cloud.Instance(gcefake.Place{Zone: zoneOf(i.GetZone()), Name: i.GetName()}).Vanish()
			w.vanished++
		}
	}
}

// unlost says of a run that too few instances vanished.
func (w *world) unlost() []string {
	if w.vanished < vanishing {
		return []string{"enough that was lost without a trace"}
	}
	return nil
}
