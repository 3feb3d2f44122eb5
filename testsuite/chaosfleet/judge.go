package main

import (
	"fmt"
	"slices"
	"time"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// requested is the word of a timeline for a replacement that somebody asked for.
const requested = "ReplaceRequested"

// life is one proxy.
type life struct {
	Name, UID  string
	Terminated time.Time // zero: it lives
	Proxy      v1.Proxy  // in the end
	Timeline   []v1.Event
}

// refusal is the time in which an instance denied every request; without an end, until
// its own.
type refusal struct {
	UID, IP string
	span
}

// span is a time; the zero one never was.
type span struct{ From, To time.Time }

// within reports whether a time is in the span. What was decided just before it began
// is not.
func (s span) within(at time.Time) bool {
	return !s.From.IsZero() && at.After(s.From.Add(decided)) && (s.To.IsZero() || at.Before(s.To))
}

// decided is how long after a round has looked its proxies may be asked to leave.
const decided = 2 * time.Second

// evidence is all that the judgement rests on.
type evidence struct {
	Bounds   limits
	End      time.Time
	Lives    []life
	Log      []happening          // at the backend, in order
	Held     []providers.Instance // what it holds in the end
	Refusals []refusal

	// ProviderOut, TargetDown, Mass are when nothing of the backend answered, when the
	// target was away, and when most proxies refused at once.
	ProviderOut, TargetDown, Mass span
	Refused                       int64 // listings that failed
	Sweeps                        []sweep
	Looks                         []look
	Rounds                        []round
}

// verdict counts what is wrong; Report has one line for each.
type verdict struct {
	FalseDeletes, FalseReplacements, OrphansLeft int
	Unnoticed                                    int // losses and refusals of which no proxy ever knew
	Blamed                                       int // proxies that served, called unhealthy while the target was down
	Unwell                                       int // living proxies that do not serve in the end
	DriftP95, HealthP95                          time.Duration
	Report                                       []string
}

func (v verdict) clean(b limits) bool {
	return v.FalseDeletes == 0 && v.FalseReplacements == 0 && v.OrphansLeft == 0 && v.Unnoticed == 0 &&
		v.Blamed == 0 && v.Unwell == 0 &&
		v.DriftP95 <= b.Drift && v.HealthP95 <= b.Health
}

func (v *verdict) note(count *int, format string, args ...any) {
	*count++
	v.Report = append(v.Report, fmt.Sprintf(format, args...))
}

// judge is pure.
func judge(e evidence) (v verdict) {
	for _, l := range e.Lives {
		e.deletes(&v, l)
		e.replacements(&v, l)
		e.blames(&v, l)
		e.end(&v, l)
	}
	for _, r := range e.Rounds {
		if r.Breaker && r.Replaced > 0 {
			v.note(&v.FalseReplacements, "false replacement: %d by a round whose breaker was open", r.Replaced)
		}
	}
	e.orphans(&v)
	v.DriftP95 = p95(e.drifts(&v))
	v.HealthP95 = p95(e.healths(&v))
	return v
}

// deletes counts the instances of a living proxy that were deleted without its wish.
func (e evidence) deletes(v *verdict, l life) {
	wishes := l.times(requested)
	for _, h := range e.of(l.UID, deleted) {
		switch {
		case !l.Terminated.IsZero() && h.At.After(l.Terminated):
		case len(wishes) > 0 && !wishes[0].After(h.At):
			wishes = wishes[1:]
		default:
			v.note(&v.FalseDeletes, "false delete: %s of %s, which lived and had not asked for it", h.IP, l.Name)
		}
	}
}

// replacements counts those of a proxy that served, or at a time when nothing may be
// replaced, and instances that were made for no reason at all.
func (e evidence) replacements(v *verdict, l life) {
	wishes := l.times(requested)
	for _, at := range wishes {
		switch {
		case e.TargetDown.within(at):
			v.note(&v.FalseReplacements, "false replacement: of %s while the target was down", l.Name)
		case e.Mass.within(at):
			v.note(&v.FalseReplacements, "false replacement: of %s while most proxies failed", l.Name)
		case !e.failed(l.UID, at):
			v.note(&v.FalseReplacements, "false replacement: of %s, which served", l.Name)
		}
	}
	made, reasons := len(e.of(l.UID, came)), 1+len(e.of(l.UID, deleted))+len(e.of(l.UID, lost))
	for range made - reasons {
		v.note(&v.FalseReplacements, "false replacement: %s made an instance though none was gone", l.Name)
	}
}

// failed reports whether the instance that a proxy had at a time refused, or was gone.
func (e evidence) failed(uid string, at time.Time) bool {
	ip := ""
	for _, h := range e.Log {
		if h.UID != uid || h.At.After(at) {
			continue
		}
		if ip = ""; h.What == came {
			ip = h.IP
		}
	}
	return ip == "" || slices.ContainsFunc(e.Refusals, func(r refusal) bool {
		return r.IP == ip && !r.From.After(at) && (r.To.IsZero() || !r.To.Add(decided).Before(at))
	})
}

// blames counts the verdicts against a proxy that served while the target was down.
func (e evidence) blames(v *verdict, l life) {
	for _, reason := range []string{
		v1.ReasonUnreachable, v1.ReasonNoEgress, v1.ReasonBadResponse, v1.ReasonTLSIntercepted,
	} {
		for _, at := range l.times(reason) {
			if e.TargetDown.within(at) && !e.failed(l.UID, at) {
				v.note(&v.Blamed, "false blame: %s is called %s while the target was down", l.Name, reason)
			}
		}
	}
}

// end counts a living proxy that does not run, or is not healthy, in the end.
func (e evidence) end(v *verdict, l life) {
	s := l.Proxy.Status
	if l.Terminated.IsZero() && (s.Phase != v1.PhaseRunning || s.Healthy == nil || !*s.Healthy) {
		v.note(&v.Unwell, "not well in the end: %s is %s (%v)", l.Name, s.Phase, s.Conditions)
	}
}

// orphans counts the instances that no living proxy has in the end, and those of
// terminated ones that were there for too long.
func (e evidence) orphans(v *verdict) {
	has := map[string]string{}
	for _, l := range e.Lives {
		if l.Terminated.IsZero() {
			has[l.UID] = l.Proxy.Status.ProviderID
			continue
		}
		for _, h := range e.of(l.UID, deleted) {
			if late := h.At.Sub(l.Terminated); late > e.Bounds.Orphan {
				v.note(&v.OrphansLeft, "an orphan stayed too long: %s of %s, for %s", h.IP, l.Name, rounded(late))
			}
		}
	}
	for _, i := range e.Held {
		if id, lives := has[i.UID]; !lives || id != i.ID {
			v.note(&v.OrphansLeft, "an orphan is left: %s of UID %s", i.ID, i.UID)
		}
	}
}
