package proxy

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// clock is a timer beside what a wait waits for. It runs during waits only.
type clock struct {
	summary string // in the Web UI
	until   time.Time
	timer   workflow.Future
	cancel  workflow.CancelFunc
}

// set makes the clock ring at a time; never for the zero one.
func (c *clock) set(ctx workflow.Context, until time.Time) {
	if c.until.Equal(until) {
		return
	}
	if c.cancel != nil {
		c.cancel()
	}
	*c = clock{summary: c.summary, until: until}
	if until.IsZero() {
		return
	}
	var own workflow.Context
	own, c.cancel = workflow.WithCancel(ctx)
	// A timer of 0 would be no event.
	left := max(until.Sub(workflow.Now(ctx)), time.Second)
	c.timer = workflow.NewTimerWithOptions(own, left, workflow.TimerOptions{Summary: c.summary})
}

// over reports whether what ends at a time is over. Another time may have been set
// together with the ring.
func (c *clock) over(until time.Time) bool { return c.rang() && c.until.Equal(until) }

func (c *clock) rang() bool { return c.timer != nil && c.timer.IsReady() }
