package proxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// made is a proxy whose instance exists and was made from spec.
func made(changes ...func(*State)) State {
	s := State{Spec: spec, MadeFrom: specHash(spec, ""), Attempt: 1}
	s.Known = activities.Known{State: providers.StateRunning, IP: "127.0.0.1"}
	s.Status.ProviderID, s.Status.Phase = "mem/a", v1.PhaseRunning
	for _, change := range changes {
		change(&s)
	}
	return s
}

// noon is when everything is seen, long after whatever happened before.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// at noon, when everything that has to be due is due.
func atNoon(o observation) observation {
	o.At, o.DeleteDue, o.CreateDue = noon, true, true
	return o
}

func seeing(state providers.State) observation {
	return atNoon(observation{
		Instance: &providers.Instance{ID: "mem/a", State: state, IP: "127.0.0.1", UID: testUID},
	})
}

func failing(class providers.Class, look bool) observation {
	return atNoon(observation{Failure: &failure{Look: look, Fault: activities.Fault{Class: class}}})
}

// decision is one row: after learning what was seen, the plan is want.
type decision struct {
	state State
	seen  observation
	want  plan
}

func decides(t *testing.T, rows map[string]decision) {
	t.Helper()
	t.Parallel()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			seen := row.state.settle(row.seen, testUID)
			require.Equal(t, row.want, decide(row.state.learn(seen), seen))
		})
	}
}

var (
	gone, nothing = atNoon(observation{Gone: true}), atNoon(observation{})
	provisioning  = seeing(providers.StateProvisioning)
	running       = seeing(providers.StateRunning)

	create  = plan{actionCreate, v1.PhaseProvisioning, v1.ReasonProvisioning, watch(paceBusy)}
	replace = plan{actionDelete, v1.PhaseReplacing, v1.ReasonReplacing, watch(paceBusy)}
	finish  = plan{actionForget, v1.PhaseDeleting, v1.ReasonInProgress, done()}
	remove  = plan{actionDelete, v1.PhaseDeleting, v1.ReasonInProgress, watch(paceBusy)}
)

// because is a plan with another reason, only is one that does nothing.
func (p plan) because(why string) plan { p.Why = why; return p }
func (p plan) only() plan              { p.Do = actionNone; return p }

func missed(s *State)   { s.Misses, s.MissedAt = 1, noon.Add(-time.Minute) }
func removing(s *State) { s.Removing = true }
func deleting(s *State) { s.Deleting = true }
func moved(s *State)    { s.Spec.Placement.Zone = "b" }
func banned(s *State)   { s.Replace = "banned" }

func missedJustNow(s *State) { s.Misses, s.MissedAt = 1, noon.Add(-time.Second) }
func justMade(s *State)      { s.AnswerAt = noon.Add(-settleFor / 2) }

// churned has just lost an instance that had stopped.
func churned(s *State) {
	s.Status.SetCondition(noon, v1.Condition{Type: v1.ConditionProvisioned, Reason: v1.ReasonInstanceStopped})
}

func notDue(o observation) observation {
	o.CreateDue = false
	return o
}

func unread(o observation) observation {
	o.Secret = &failure{Look: true, Fault: activities.Fault{Class: providers.ErrTransient}}
	return o
}

func nameless() observation {
	o := seeing(providers.StateRunning)
	o.Instance.UID = ""
	return o
}

func recent(o observation) observation {
	o.DeleteDue = false
	return o
}

func leaving(o observation) observation {
	inst := *o.Instance
	inst.Deleting = true
	o.Instance = &inst
	return o
}

func foreign() observation {
	o := seeing(providers.StateRunning)
	o.Instance.UID = "somebody-else"
	return o
}

func TestDecideLiving(t *testing.T) {
	doubted := plan{actionNone, v1.PhaseRunning, v1.ReasonInstanceLost, after(paceConfirm)}
	starts := plan{actionNone, v1.PhaseProvisioning, v1.ReasonProvisioning, watch(paceBusy)}
	runs := plan{actionNone, v1.PhaseRunning, v1.ReasonCreated, watch(paceSteady)}
	noIP := seeing(providers.StateRunning)
	noIP.Instance.IP = ""
	decides(t, map[string]decision{
		"a new proxy creates": {State{Spec: spec}, nothing, create},
		"a lost answer creates again": {
			State{Spec: spec, Creating: true, MadeFrom: specHash(spec, "")}, nothing, create,
		},
		"a starting instance is watched":    {made(), provisioning, starts},
		"running without an IP is starting": {made(), noIP, starts},
		"a running one is watched":          {made(), running, runs},
		"one NotFound is not believed":      {made(), gone, doubted},
		"two NotFounds create":              {made(missed), gone, create.because(v1.ReasonInstanceLost)},
		"NotFound after a Delete creates":   {made(removing), gone, create},
		"a stopped one is replaced": {
			made(), seeing(providers.StateStopped), replace.because(v1.ReasonInstanceStopped),
		},
		"a terminated one is replaced": {
			made(), seeing(providers.StateTerminated), replace.because(v1.ReasonInstanceTerminated),
		},
		"an unknown state is stopped":         {made(), seeing("WEIRD"), replace.because(v1.ReasonInstanceStopped)},
		"another spec replaces":               {made(moved), running, replace},
		"replace replaces":                    {made(banned), running, replace},
		"a Delete has no way back":            {made(removing), running, replace},
		"a starting one of another spec, too": {made(moved), provisioning, replace},
		"a Delete is not repeated at once":    {made(removing), recent(running), replace.only()},
		"nor while the backend deletes":       {made(removing), leaving(running), replace.only()},
		"one that leaves by itself is let go": {made(), leaving(running), replace.only()},
		"a second NotFound at once is none":   {made(missedJustNow), gone, doubted},
		"one that was just made may be hidden": {
			made(missed, justMade), gone, plan{actionNone, v1.PhaseRunning, v1.ReasonProvisioning, after(paceBusy)},
		},
		"what never stays waits": {
			made(removing, churned), notDue(gone),
			plan{actionForget, v1.PhasePending, v1.ReasonInstanceStopped, after(paceRemake)},
		},
		"a running one outlives its secret": {
			made(), unread(running), plan{actionNone, v1.PhaseRunning, v1.ReasonTransientError, watch(paceSecret)},
		},
		"nothing is made without its secret": {
			State{Spec: spec}, unread(nothing), plan{actionNone, v1.PhasePending, v1.ReasonTransientError, after(paceRetry)},
		},
		"no UID is nobody's to decide about": {
			made(), nameless(), plan{actionNone, v1.PhaseBlocked, v1.ReasonPermanentError, park(paceProbe)},
		},
		"a foreign one is doubted": {made(), foreign(), doubted},
		"and never adopted":        {made(missed), foreign(), create.because(v1.ReasonInstanceLost)},
	})
}

func TestDecideDeleting(t *testing.T) {
	unreadable, refused := failing(providers.ErrPermanent, true), failing(providers.ErrPermanent, false)
	lost := State{Spec: spec, Deleting: true, Creating: true}
	wait := plan{actionNone, v1.PhaseDeleting, v1.ReasonPermanentError, after(paceQuota)}
	doubted := plan{actionNone, v1.PhaseDeleting, v1.ReasonInProgress, after(paceConfirm)}
	failed := atNoon(observation{CreateFailed: &failure{}})
	decides(t, map[string]decision{
		"it deletes":                            {made(deleting), running, remove},
		"it deletes what is starting":           {made(deleting), provisioning, remove},
		"it deletes a foreign one never":        {made(deleting, missed), foreign(), finish},
		"a Delete is not repeated at once":      {made(deleting, removing), recent(running), remove.only()},
		"nor while the backend deletes":         {made(deleting), leaving(running), remove.only()},
		"a NotFound out of the blue is doubted": {made(deleting), gone, doubted},
		"and believed the second time":          {made(deleting, missed), gone, finish},
		"NotFound after a Delete finishes":      {made(deleting, removing), gone, finish},
		"what never was finishes":               {State{Spec: spec, Deleting: true}, nothing, finish},
		"what failed late is cleaned up":        {made(deleting), failed, remove},
		"and is then gone":                      {made(deleting, removing), failed, finish},
		"it never latches":                      {made(deleting), refused, wait},
		"an ID nobody can read is deleted": {
			made(deleting), unreadable, plan{actionDelete, v1.PhaseDeleting, v1.ReasonInProgress, done()},
		},
		"a lost create is looked for again": {lost, unreadable, wait},
	})
}

func TestDecideFailure(t *testing.T) {
	stays := func(why string, next wait) plan { return plan{actionNone, v1.PhaseRunning, why, next} }
	pending := func(why string, next wait) plan { return plan{actionNone, v1.PhasePending, why, next} }
	blocked := plan{actionNone, v1.PhaseBlocked, v1.ReasonPermanentError, park(paceProbe)}
	full := failing(providers.ErrQuotaExceeded, false)
	missing := observation{Failure: &failure{Fault: activities.Fault{
		Class: providers.ErrPermanent, Reason: v1.ReasonProviderNotConfigured,
	}}}
	decides(t, map[string]decision{
		"Transient looks again": {
			made(), failing(providers.ErrTransient, true), stays(v1.ReasonTransientError, watch(paceRetry)),
		},
		"Quota looks again later": {
			made(), failing(providers.ErrQuotaExceeded, true), stays(v1.ReasonQuotaExceeded, watch(paceQuota)),
		},
		"Permanent latches": {made(), failing(providers.ErrPermanent, true), blocked},
		"a failed act is timed": {
			made(), failing(providers.ErrTransient, false), stays(v1.ReasonTransientError, after(paceRetry)),
		},
		"a full backend is timed": {State{Spec: spec}, full, pending(v1.ReasonQuotaExceeded, after(paceQuota))},
		"a NotFound of Create retries": {
			State{Spec: spec}, failing(providers.ErrNotFound, false), pending(v1.ReasonTransientError, after(paceRetry)),
		},
		"no provider latches": {State{Spec: spec}, missing, blocked.because(v1.ReasonProviderNotConfigured)},
	})
}

func TestDecideCreateFailed(t *testing.T) {
	late := func(class providers.Class) observation {
		return atNoon(observation{CreateFailed: &failure{Fault: activities.Fault{Class: class}, Look: true}})
	}
	waits := func(phase v1.Phase, next wait) plan {
		return plan{actionNone, phase, v1.ReasonCreateFailed, next}
	}
	lapsed := func(s *State) { s.Lapsed = s.Attempt }
	decides(t, map[string]decision{
		"a stockout waits": {
			made(), late(providers.ErrQuotaExceeded), waits(v1.PhaseProvisioning, after(paceQuota)),
		},
		"a fault waits": {
			made(), late(providers.ErrTransient), waits(v1.PhaseProvisioning, after(paceRetry)),
		},
		"a bad image latches": {made(), late(providers.ErrPermanent), waits(v1.PhaseBlocked, park(paceProbe))},
		"an old spec's is not waited for": {
			made(moved), late(providers.ErrPermanent), replace.because(v1.ReasonCreateFailed),
		},
		"after the wait it is removed": {
			made(lapsed), late(providers.ErrQuotaExceeded), replace.because(v1.ReasonCreateFailed),
		},
		"and then made anew": {made(lapsed, removing), late(providers.ErrQuotaExceeded), create},
	})
}

func TestEveryPlanSaysWhatEndsItsWait(t *testing.T) {
	t.Parallel()
	valid := map[kind]bool{kindAfter: true, kindWatch: true, kindPark: true, kindDone: true}
	states := []State{made(), made(deleting), made(removing), made(moved), {Spec: spec}, {Spec: spec, Deleting: true}}
	for _, s := range states {
		for _, o := range []observation{
			nothing, gone, running, provisioning, seeing("WEIRD"), foreign(),
			{CreateFailed: &failure{}},
			failing(providers.ErrTransient, true), failing(providers.ErrPermanent, false), failing(providers.ErrNotFound, true),
		} {
			o = s.settle(o, testUID)
			p := decide(s.learn(o), o)
			require.True(t, valid[p.Next.kind], "%+v %+v", s, o)
			require.NotEmpty(t, p.Why)
			require.NotEmpty(t, p.Then)
			require.Equal(t, p.Next.kind == kindDone, p.Next.pace == "")
		}
	}
}
