package main

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

const (
	proxies = 200
	kills   = 10
	ends    = 20 // workflows that are terminated, in two halves
	lagging = 8  // living proxies that Visibility does not show; fewer than one sweep may delete
	looking = 20 // proxies that look at their instances while the provider is out
	mass    = 120
)

// The parts that proxies play, by their numbers; those that are in none only live.
var (
	killed     = numbers{0, kills}
	refusing   = numbers{10, 4} // one of them while the target is down
	terminated = numbers{20, ends}
	unseen     = numbers{40, lagging}
	asked      = numbers{50, looking}
	refusers   = numbers{80, mass}
)

// numbers are so many proxies, from the first one on.
type numbers struct{ first, count int }

func (n numbers) at(i int) int { return n.first + i }

func nameOf(n int) string { return fmt.Sprintf("p%03d", n) }

// wanted is the spec of every proxy: each may be replaced for bad health.
func (w *world) wanted() v1.ProxySpec {
	return v1.ProxySpec{
		Provider: providerName, Port: w.egress.Port,
		HealthCheck: v1.HealthCheck{ReplaceAfter: v1.Duration(replaceAfter.String())},
	}
}

// step is what happens at a time of the life, or as soon as the one before it is over.
type step struct {
	at time.Duration
	do func(context.Context) error
}

const second = time.Second

// steps are the plan of a life, in order. A loss is far enough from the outage of the
// provider for the sweep to see it; what the proxies themselves do then falls into it.
func (w *world) steps() []step {
	plan := []step{
		{0, func(ctx context.Context) error { w.hide(true); return w.terminate(ctx, 0) }},
		{2 * second, quietly(w.refuse(0))},
		// The first refuser is overdue while the target is away, and must stay until it is back.
		{12 * second, quietly(w.targetDown)},
		{28 * second, w.targetUp},
		{29 * second, quietly(func() { w.hide(false) })},
		{30 * second, w.providerOut}, // three intervals of the drift sweep
		{30*second + 3*driftEvery, quietly(w.providerBack)},
		{44 * second, func(ctx context.Context) error { w.sight.noLiving.Store(true); return w.terminate(ctx, ends/2) }},
		{46 * second, quietly(w.refuse(1, 2, 3))},
		{70 * second, quietly(func() { w.sight.noLiving.Store(false) })},
		{76 * second, quietly(w.massBegins)},
		{76*second + replaceAfter + 3*healthEvery, quietly(w.massEnds)},
		{98 * second, w.nothingListed},
		{99 * second, w.nothingRunning},
	}
	for i := range kills {
		at := time.Duration(i) * 3 * second // 0 to 12 s, and while the target is away
		if i >= kills/2 {
			at = 48*second + time.Duration(i-kills/2)*3*second // 48 to 60 s, while Visibility is empty
		}
		plan = append(plan, step{at, quietly(func() { w.cloud.lose(w.lives[killed.at(i)].UID) })})
	}
	return plan
}

// quietly is a step that cannot fail.
func quietly(do func()) func(context.Context) error {
	return func(context.Context) error { do(); return nil }
}

// shortcomings says what a run did not have that it should have had.
func shortcomings(e evidence) (faults []string) {
	need := func(what string, n, least int) {
		if n < least {
			faults = append(faults, fmt.Sprintf("%s: %d, at least %d have to be", what, n, least))
		}
	}
	need("proxies", len(e.Lives), proxies)
	need("instances that were lost", count(e.Log, func(h happening) bool { return h.What == lost }), kills)
	need("workflows that were terminated", count(e.Lives, func(l life) bool { return !l.Terminated.IsZero() }), ends)
	need("listings that failed", int(e.Refused), 3)
	need("proxies that looked while the provider was out", count(e.Lives, e.met), looking/2)
	need("rounds while the target was down", count(e.Rounds, func(r round) bool {
		return e.TargetDown.within(r.At) && r.Tally.Undecided > r.Tally.Passed+r.Tally.Failed
	}), 3)
	need("proxies that were overdue while the target was down", count(e.Refusals, func(r refusal) bool {
		return r.To.IsZero() && !r.From.Add(replaceAfter+e.Bounds.Health).After(e.TargetDown.To)
	}), 1)
	need("proxies that refused and were replaced", count(e.Refusals, e.renewed), refusing.count)
	need("rounds with an open breaker and somebody overdue", count(e.Rounds, func(r round) bool {
		return r.Breaker && r.Overdue > 0
	}), 1)
	need("proxies that refused all at once", count(e.Refusals, func(r refusal) bool { return !r.To.IsZero() }), mass)
	need("collections while Visibility lagged", count(e.Sweeps, func(s sweep) bool { return s.Lag }), 1)
	need("collections while Visibility was empty", count(e.Sweeps, func(s sweep) bool { return s.Blind }), 1)
	need("comparisons with an empty listing", count(e.Looks, look.allMissing), 1)
	need("comparisons without a running proxy", count(e.Looks, look.nobody), 1)
	return faults
}

func count[T any](all []T, is func(T) bool) (n int) {
	for _, x := range all {
		if is(x) {
			n++
		}
	}
	return n
}

// met reports whether a proxy has met the outage of the provider.
func (e evidence) met(l life) bool {
	return count(l.times(v1.ReasonTransientError), func(at time.Time) bool {
		return !at.Before(e.ProviderOut.From) && !at.After(e.ProviderOut.To)
	}) > 0
}

// renewed reports whether a proxy got another instance for one that refused for good.
func (e evidence) renewed(r refusal) bool {
	return r.To.IsZero() && count(e.of(r.UID, came), func(h happening) bool { return h.At.After(r.From) }) > 0
}

// allMissing is a comparison with a listing that shows nothing.
func (l look) allMissing() bool { return l.Listed == 0 && l.Hinted > proxies/2 }

// nobody is a comparison for which nobody runs.
func (l look) nobody() bool { return l.Running == 0 }
