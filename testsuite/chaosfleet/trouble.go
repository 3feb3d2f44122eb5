package main

import (
	"context"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/workflows/proxy"
)

const (
	// patience bounds what a step of the plan asks of Temporal, or waits for.
	patience = 20 * time.Second
	// glance is between two looks into the diary.
	glance = 100 * time.Millisecond
)

// terminate ends half of the workflows that are to be ended, from a number on. Nobody
// cleans up after them.
func (w *world) terminate(ctx context.Context, from int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := from; i < from+ends/2; i++ {
		l := &w.lives[terminated.at(i)]
		l.Terminated = time.Now()
		if err := w.temporal.TerminateWorkflow(ctx, proxy.WorkflowID(namespace, l.Name), "", "planned"); err != nil {
			return err
		}
	}
	w.say("%d workflows are terminated", ends/2)
	return nil
}

// hide keeps some living proxies out of Visibility, or shows them again.
func (w *world) hide(on bool) {
	if !on {
		w.sight.hidden.Store(nil)
		return
	}
	hidden := map[string]bool{}
	for i := range unseen.count {
		hidden[w.lives[unseen.at(i)].UID] = true
	}
	w.sight.hidden.Store(&hidden)
}

// refuse lets some of the proxies that are to be replaced deny every request.
func (w *world) refuse(which ...int) func() {
	return func() {
		for _, i := range which {
			w.denies(w.lives[refusing.at(i)].UID)
		}
	}
}

// denies lets the instance of a proxy refuse from now on, and writes it down.
func (w *world) denies(uid string) {
	for _, i := range w.cloud.of(uid) {
		w.e.Refusals = append(w.e.Refusals, refusal{UID: uid, IP: i.IP, span: span{From: time.Now()}})
		w.egress.refuse(true, i.IP)
	}
}

func (w *world) targetDown() {
	w.e.TargetDown.From = time.Now()
	w.site.down()
	w.say("the target is away")
}

func (w *world) targetUp(ctx context.Context) error {
	w.say("the target is back")
	defer func() { w.e.TargetDown.To = time.Now() }()
	return w.site.up(ctx)
}

// providerOut lets every call fail, and some proxies look at their instances meanwhile.
func (w *world) providerOut(ctx context.Context) error {
	w.say("the provider is out")
	w.e.ProviderOut.From = time.Now()
	w.cloud.backend.Break(providers.ErrTransient)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range asked.count {
		p := w.lives[asked.at(i)]
		err := w.temporal.SignalWorkflow(ctx, proxy.WorkflowID(namespace, p.Name), "", proxy.SignalHint, proxy.Hint{})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) providerBack() {
	w.say("the provider is back")
	w.cloud.backend.Heal()
	w.e.ProviderOut.To = time.Now()
}

// massBegins lets most proxies refuse at once, between two batches of probes: else half
// of a batch would see them refuse, and no breaker is about that.
func (w *world) massBegins() {
	w.still.Lock()
	defer w.still.Unlock()
	w.e.Mass.From = time.Now()
	for i := range refusers.count {
		w.denies(w.lives[refusers.at(i)].UID)
	}
	w.say("%d proxies refuse at once", refusers.count)
}

func (w *world) massEnds() {
	w.still.Lock()
	defer w.still.Unlock()
	w.e.Mass.To = time.Now()
	for i := range w.e.Refusals {
		if r := &w.e.Refusals[i]; !r.From.Before(w.e.Mass.From) {
			r.To = w.e.Mass.To
			w.egress.refuse(false, r.IP)
		}
	}
	w.say("they serve again")
}

// nothingListed lets the provider's listing be empty until a sweep has compared with it.
func (w *world) nothingListed(ctx context.Context) error {
	w.say("the provider lists nothing")
	w.cloud.empty.Store(true)
	defer w.cloud.empty.Store(false)
	return w.compared(ctx, look.allMissing)
}

// nothingRunning lets Visibility show no running proxy until a sweep has asked it.
func (w *world) nothingRunning(ctx context.Context) error {
	w.say("Visibility shows no running proxy")
	w.sight.noRunning.Store(true)
	defer w.sight.noRunning.Store(false)
	return w.compared(ctx, look.nobody)
}

// compared waits for a comparison of a kind. One that does not come is a shortcoming of
// the run.
func (w *world) compared(ctx context.Context, is func(look) bool) error {
	for begun := time.Now(); time.Since(begun) < patience; {
		if w.looked(is) {
			return nil
		}
		if err := pause(ctx, glance); err != nil {
			return err
		}
	}
	return nil
}
