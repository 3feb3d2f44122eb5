package server

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

const (
	// checksFresh is how long an answer about the checks is given again: they are made
	// once a minute, and asking costs two calls.
	checksFresh = 5 * time.Second
	// checksTimeout bounds the question: the list of providers does not depend on it.
	checksTimeout = 2 * time.Second
)

// checks remembers the last round of checks. While Temporal cannot be asked, it tells
// the round that it knows, and why there is no newer one.
type checks struct {
	fleet Fleet
	clock Clock

	mu    sync.Mutex
	asked time.Time // zero: never
	state v1.ProviderChecks
	found map[string]v1.ProviderCheck
}

// last returns the state of the checks, and what they found by the provider's name. The
// map is never changed.
func (c *checks) last(ctx context.Context) (v1.ProviderChecks, map[string]v1.ProviderCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Now(); c.asked.IsZero() || now.Sub(c.asked) >= checksFresh {
		c.ask(ctx)
		c.asked = now
	}
	return c.state, c.found
}

func (c *checks) ask(ctx context.Context) {
	// A client that goes away must not leave its error for the next one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checksTimeout)
	defer cancel()
	at, found, err := c.fleet.LastChecks(ctx)
	if first, ok := errors.AsType[*fleet.FirstRunError](err); ok { // which is no fault
		c.state = v1.ProviderChecks{FirstAt: first.At.UTC()}
		return
	}
	if err != nil {
		c.state.Error, c.state.FirstAt = err.Error(), time.Time{}
		return
	}
	c.state, c.found = v1.ProviderChecks{CheckedAt: at.UTC()}, found
}
