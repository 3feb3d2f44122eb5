package gcefake

import (
	"sync"
	"time"
)

// Clock tells the server the time. Nothing happens between two requests: what was due
// is done at the next one, in its order and at its time.
type Clock interface{ Now() time.Time }

// Wall is the clock of the machine.
type Wall struct{}

// Now is time.Now.
func (Wall) Now() time.Time { return time.Now() }

// Manual is a clock that a test turns.
type Manual struct {
	mu   sync.Mutex
	now  time.Time
	step time.Duration
}

// NewManual returns a clock that stands at now.
func NewManual(now time.Time) *Manual { return &Manual{now: now} }

// Stepping returns a clock that goes on by step with each request, so that what polls
// gets on, and nobody has to turn it.
func Stepping(now time.Time, step time.Duration) *Manual { return &Manual{now: now, step: step} }

// Now returns the time, and then goes on by the clock's step.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now
	m.now = now.Add(m.step)
	return now
}

// Advance turns the clock on by d.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}
