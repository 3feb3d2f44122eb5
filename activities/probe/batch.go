package probe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// concurrency is how many attempts are under way at once, unless a Prober says
// otherwise: more of them take one another the time that each has.
const concurrency = 200

// Job is one proxy of a batch.
type Job struct {
	Proxy  Proxy
	Target Target
	Before Health // what it is called now
}

// Batch probes every job, a failing or returning proxy several times as Judge says,
// and returns one ruling a job in the order of the jobs. It tries each distinct target
// directly once at its start, and once more at its end where a proxy is about to be
// blamed for what a target that went away meanwhile would explain. What is unfinished
// when ctx ends is Inconclusive; Batch returns within a second of that. progress, which
// may be nil, is called after every try, by one goroutine at a time.
func (p *Prober) Batch(ctx context.Context, jobs []Job, progress func(done, total int)) []Ruling {
	b := &batch{
		prober: p, jobs: jobs, progress: progress, slots: make(chan struct{}, p.concurrency()),
		opening: p.controls(ctx, jobs),
	}
	rulings := make([]Ruling, len(jobs))
	var group sync.WaitGroup
	for i := range jobs {
		group.Go(func() { rulings[i] = b.judge(ctx, jobs[i]) })
	}
	group.Wait()
	b.recheck(ctx, rulings)
	return rulings
}

func (p *Prober) concurrency() int {
	if p.Concurrency > 0 {
		return p.Concurrency
	}
	return concurrency
}

func (p *Prober) thresholds() Thresholds {
	if p.Thresholds == (Thresholds{}) {
		return DefaultThresholds()
	}
	return p.Thresholds
}

// controls begins a control probe of each distinct target.
func (p *Prober) controls(ctx context.Context, jobs []Job) map[Target]func() Control {
	out := map[Target]func() Control{}
	for _, j := range jobs {
		if _, known := out[j.Target]; known || j.Target.IsZero() {
			continue
		}
		result := make(chan Control, 1)
		go func() { result <- p.Control(ctx, j.Target) }()
		out[j.Target] = sync.OnceValue(func() Control { return <-result })
	}
	return out
}

// batch is one call of Batch.
type batch struct {
	prober  *Prober
	jobs    []Job
	slots   chan struct{} // one an attempt, none while a job pauses
	opening map[Target]func() Control

	progress func(done, total int)
	mu       sync.Mutex // one call of progress at a time
	done     atomic.Int64
}

// judge tries one proxy until its ruling stands.
func (b *batch) judge(ctx context.Context, j Job) Ruling {
	defer func() { b.tell(int(b.done.Add(1))) }()
	t := b.prober.thresholds()
	var tries []Verdict
	for {
		tries = append(tries, b.try(ctx, j))
		r, again := Judge(j.Before, tries, t)
		if !again {
			return r
		}
		b.tell(int(b.done.Load()))
		pause(ctx, t.Pause)
	}
}

// tell reports what is done.
func (b *batch) tell(done int) {
	if b.progress == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress(done, len(b.jobs))
}

// try makes one attempt, and settles it by the target's control probe.
func (b *batch) try(ctx context.Context, j Job) Verdict {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return settle(finding{cause: CauseOurs, detail: "the round ended first"}, Control{})
	}
	f := b.prober.attempt(ctx, j.Target, j.Proxy)
	<-b.slots
	if !f.cause.Excused() {
		return settle(f, Control{})
	}
	return settle(f, b.opening[j.Target]())
}

// recheck tries those targets directly once more that may be behind what proxies are
// unhealthy for. A target that went away during the round excuses those that were about
// to be called so. It notes for every unhealthy proxy whether its target was there.
func (b *batch) recheck(ctx context.Context, rulings []Ruling) {
	var suspects []int
	var again []Job
	for i := range rulings {
		r := &rulings[i]
		if r.Health != HealthUnhealthy || !r.Verdict.Failed() {
			continue
		}
		r.TargetDown = !b.opening[b.jobs[i].Target]().Reached
		if r.Verdict.Cause.Excused() {
			suspects, again = append(suspects, i), append(again, b.jobs[i])
		}
	}
	closing := b.prober.controls(ctx, again)
	for _, i := range suspects {
		if now := closing[b.jobs[i].Target](); !now.Reached {
			rulings[i] = excuse(b.jobs[i].Before, rulings[i], now)
		}
	}
}

// excuse takes a ruling back: the target is down by now. What was unhealthy before stays
// so. Pure.
func excuse(before Health, r Ruling, now Control) Ruling {
	r.TargetDown = true
	r.Health, r.Changed = before, false
	r.Verdict.Reason = reasonOf(r.Verdict.Cause, now.Reached)
	r.Verdict.Text = join(r.Verdict.Text, "but no longer at the end of the round: "+now.Text)
	return r
}

// pause waits between two tries.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
