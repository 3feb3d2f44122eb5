package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/testsuite/gcefake"
)

// settle waits until nothing is missing. What still is when the time is over is part of
// the evidence.
func (w *world) settle(ctx context.Context, what string, missing func(context.Context) []string) error {
	begun := time.Now()
	for {
		left := missing(ctx)
		if len(left) == 0 {
			w.say("%s after %s", what, time.Since(begun).Round(time.Second))
			return ctx.Err()
		}
		if time.Since(begun) > settleWithin {
			for _, one := range left {
				w.unsettled = append(w.unsettled, what+": "+one)
			}
			return nil
		}
		if err := wait(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// serving says which proxies do not run, and what is at the server beside theirs.
func (w *world) serving(ctx context.Context) (missing []string) {
	shown, err := w.fleet.List(ctx, namespace)
	if err != nil {
		return []string{err.Error()}
	}
	for _, p := range shown {
		if p.Status.Phase != v1.PhaseRunning {
			missing = append(missing, fmt.Sprintf("%s is %s %v", p.Metadata.Name, p.Status.Phase, p.Status.Conditions))
		}
	}
	if n := len(shown); n != proxies {
		missing = append(missing, fmt.Sprintf("%d proxies are shown", n))
	}
	if n := len(w.cloud.Instances()); n != proxies {
		missing = append(missing, fmt.Sprintf("%d instances", n))
	}
	return missing
}

// gone says which proxies are still there, and what the server still holds.
func (w *world) gone(ctx context.Context) (missing []string) {
	shown, err := w.fleet.List(ctx, namespace)
	if err != nil {
		return []string{err.Error()}
	}
	for _, p := range shown {
		missing = append(missing, fmt.Sprintf("%s is %s %v", p.Metadata.Name, p.Status.Phase, p.Status.Conditions))
	}
	if n := len(w.cloud.Instances()); n > 0 {
		missing = append(missing, fmt.Sprintf("%d instances", n))
	}
	return missing
}

// preempt takes some instances back, as happens to spot machines.
func (w *world) preempt() {
	all := w.cloud.Instances()
	slices.Reverse(all)
	for _, i := range all[:min(preempted, len(all))] {
		if i.GetStatus() == gcefake.Running {
			w.cloud.Instance(gcefake.Place{Zone: zoneOf(i.GetZone()), Name: i.GetName()}).Preempt()
		}
	}
}

// gather puts the evidence together.
func (w *world) gather() evidence {
	e := evidence{
		Proxies: proxies, Unsettled: w.unsettled, History: w.cloud.History(), Calls: len(w.cloud.Calls()),
	}
	for _, i := range w.cloud.Instances() {
		e.Held = append(e.Held, i.GetSelfLink())
	}
	for _, d := range w.cloud.Disks() {
		e.Disks = append(e.Disks, d.GetSelfLink())
	}
	for _, f := range w.cloud.Firewalls() {
		e.Firewalls = append(e.Firewalls, f.GetSelfLink())
	}
	return e
}
