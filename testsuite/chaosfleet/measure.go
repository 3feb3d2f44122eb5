package main

import (
	"slices"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// drifts are the times from each loss to the first sign that its proxy knows of it.
func (e evidence) drifts(v *verdict) (all []time.Duration) {
	for _, h := range e.Log {
		l, known := e.lifeOf(h.UID)
		if h.What != lost || !known {
			continue
		}
		signs := l.times(v1.ReasonInstanceLost)
		for _, c := range e.of(h.UID, came) {
			signs = append(signs, c.At)
		}
		all = append(all, e.after(h.At, signs, func() {
			v.note(&v.Unnoticed, "not noticed: the loss of %s of %s", h.IP, l.Name)
		}))
	}
	return all
}

// healths are the times from each refusal to the condition that says so.
func (e evidence) healths(v *verdict) (all []time.Duration) {
	for _, r := range e.Refusals {
		l, _ := e.lifeOf(r.UID)
		all = append(all, e.after(r.From, l.times(v1.ReasonRefused), func() {
			v.note(&v.Unnoticed, "not noticed: that %s refuses at %s", l.Name, r.IP)
		}))
	}
	return all
}

// after is the time until the first sign that is not before; without one, until the
// end.
func (e evidence) after(at time.Time, signs []time.Time, none func()) time.Duration {
	slices.SortFunc(signs, time.Time.Compare)
	i := slices.IndexFunc(signs, func(s time.Time) bool { return !s.Before(at) })
	if i < 0 {
		none()
		return e.End.Sub(at)
	}
	return signs[i].Sub(at)
}

func (e evidence) of(uid, what string) (out []happening) {
	for _, h := range e.Log {
		if h.UID == uid && h.What == what {
			out = append(out, h)
		}
	}
	return out
}

func (e evidence) lifeOf(uid string) (life, bool) {
	i := slices.IndexFunc(e.Lives, func(l life) bool { return l.UID == uid })
	if i < 0 {
		return life{}, false
	}
	return e.Lives[i], true
}

// times are when a timeline has a reason.
func (l life) times(reason string) (out []time.Time) {
	for _, ev := range l.Timeline {
		if ev.Reason == reason {
			out = append(out, ev.At)
		}
	}
	return out
}

// p95 is the least time that 95 of 100 do not pass; 0 for none.
func p95(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(95*len(all)+99)/100-1]
}
