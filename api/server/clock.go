package server

import "time"

// Clock is what the server knows of time, so that tests can move it.
type Clock interface {
	Now() time.Time
	// Ticker sends the time every period, and drops what nobody takes, until stop.
	Ticker(period time.Duration) (ticks <-chan time.Time, stop func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Ticker(period time.Duration) (<-chan time.Time, func()) {
	ticker := time.NewTicker(period)
	return ticker.C, ticker.Stop
}
