package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

const (
	// weatherEvery is how often the backend moves on by itself.
	weatherEvery = 200 * time.Millisecond
	// Of a thousand instances, so many boot, vanish or stop each time; of a thousand
	// zones, so many finish their deletes.
	boots, deletes  = 250, 120
	vanishes, stops = 2, 2
)

// weather is what happens at the backend without the fleet: instances boot and are
// removed in their own time, and during a storm some vanish or stop.
type weather struct {
	*backend
	random *rand.Rand
	struck map[string]bool // UIDs: a second loss in a row would be waited for
}

// run lets time pass at the backend until ctx ends; what is bad ends with the storm.
func (w *weather) run(ctx context.Context, calm <-chan struct{}) {
	tick := time.NewTicker(weatherEvery)
	defer tick.Stop()
	for storm := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-calm:
			storm, calm = false, nil
		case <-tick.C:
			w.pass(storm)
		}
	}
}

func (w *weather) pass(storm bool) {
	defer w.change()()
	for _, name := range zones {
		zone := w.zones[name]
		for _, inst := range zone.Instances() {
			w.touch(zone, inst, storm)
		}
		if w.happens(deletes) {
			zone.FinishDeletes()
		}
	}
}

func (w *weather) touch(zone *fake.Provider, inst providers.Instance, storm bool) {
	switch {
	case inst.State == providers.StateProvisioning && w.happens(boots):
		zone.Finish(inst.ID)
	case !storm || inst.State != providers.StateRunning || w.struck[inst.UID]:
	case w.happens(vanishes):
		w.struck[inst.UID] = true
		zone.Lose(inst.ID)
	case w.happens(stops):
		w.struck[inst.UID] = true
		zone.SetState(inst.ID, providers.StateTerminated)
	}
}

func (w *weather) happens(of1000 int) bool { return w.random.IntN(1000) < of1000 }
