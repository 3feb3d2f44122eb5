package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

// full is an hour in which all that is planned has happened.
func full() evidence {
	e := evidence{
		Bounds: allowed(), End: at(300), Refused: 3,
		TargetDown: span{at(20), at(45)}, ProviderOut: span{at(60), at(72)}, Mass: span{at(120), at(140)},
	}
	for n := range proxies {
		l := lives(nameOf(n), "mem/"+nameOf(n))
		e.Log = append(e.Log, happening{at(0), came, l.UID, nameOf(n)})
		switch {
		case within(terminated, n):
			l = life{Name: l.Name, UID: l.UID, Terminated: at(10)}
			e.Log = append(e.Log, happening{at(30), deleted, l.UID, nameOf(n)})
			e.Lives = append(e.Lives, l)
			continue
		case within(killed, n):
			l.Timeline = []v1.Event{said(12, v1.ReasonInstanceLost)}
			e.Log = append(e.Log, happening{at(10), lost, l.UID, nameOf(n)})
			e.Log = append(e.Log, happening{at(17), came, l.UID, "new " + nameOf(n)})
		case within(refusing, n):
			l.Timeline = []v1.Event{said(13, v1.ReasonRefused), said(46, requested)}
			e.Refusals = append(e.Refusals, refusal{UID: l.UID, IP: nameOf(n), span: span{From: at(10)}})
			e.Log = append(e.Log, happening{at(47), deleted, l.UID, nameOf(n)})
			e.Log = append(e.Log, happening{at(48), came, l.UID, "new " + nameOf(n)})
		case within(asked, n):
			l.Timeline = []v1.Event{said(65, v1.ReasonTransientError)}
		case within(refusers, n):
			l.Timeline = []v1.Event{said(123, v1.ReasonRefused)}
			e.Refusals = append(e.Refusals, refusal{UID: l.UID, IP: nameOf(n), span: e.Mass})
			e.Refusals[len(e.Refusals)-1].From = at(120)
		}
		e.Lives = append(e.Lives, l)
		e.Held = append(e.Held, providers.Instance{ID: "mem/" + nameOf(n), UID: l.UID})
	}
	e.Sweeps = []sweep{{Lag: true}, {Blind: true}}
	e.Looks = []look{
		{DriftReport: activities.DriftReport{Running: 180, Listed: 180}},
		{DriftReport: activities.DriftReport{Running: 180, Hinted: 180}},
		{DriftReport: activities.DriftReport{Listed: 180}},
	}
	down := activities.ProviderHealthNote{Tally: activities.Tally{Failed: 1, Undecided: 189}}
	e.Rounds = []round{
		{At: at(25), ProviderHealthNote: down},
		{At: at(30), ProviderHealthNote: down},
		{At: at(35), ProviderHealthNote: down},
		{At: at(135), Overdue: 1, ProviderHealthNote: activities.ProviderHealthNote{Breaker: true}},
	}
	return e
}

func within(n numbers, i int) bool { return i >= n.first && i < n.first+n.count }

func TestARunWithoutItsTroublesProvesTooLittle(t *testing.T) {
	t.Parallel()
	require.Empty(t, shortcomings(full()))
	stays := func(e *evidence) { e.Refusals[refusing.count].To = time.Time{} }
	for want, spoil := range map[string]func(*evidence){
		"proxies: 199": func(e *evidence) { e.Lives = e.Lives[:proxies-1] },
		"instances that were lost: 9": func(e *evidence) {
			for i := range e.Log {
				if e.Log[i].What == lost {
					e.Log[i].What = came
					return
				}
			}
		},
		"workflows that were terminated: 19":                  func(e *evidence) { e.Lives[terminated.first] = life{} },
		"listings that failed: 2":                             func(e *evidence) { e.Refused = 2 },
		"proxies that looked while the provider was out: 0":   func(e *evidence) { e.ProviderOut = span{at(66), at(72)} },
		"rounds while the target was down: 2":                 func(e *evidence) { e.Rounds[0].Tally.Undecided = 0 },
		"proxies that were overdue while the target was down": func(e *evidence) { e.TargetDown.To = at(25) },
		"proxies that refused and were replaced: 3":           func(e *evidence) { e.Refusals[0].UID = "nobody" },
		"rounds with an open breaker and somebody overdue: 0": func(e *evidence) { e.Rounds[3].Overdue = 0 },
		"proxies that refused all at once: 119":               stays,
		"collections while Visibility lagged: 0":              func(e *evidence) { e.Sweeps[0].Lag = false },
		"collections while Visibility was empty: 0":           func(e *evidence) { e.Sweeps[1].Blind = false },
		"comparisons with an empty listing: 0":                func(e *evidence) { e.Looks[1].Hinted = 1 },
		"comparisons without a running proxy: 0":              func(e *evidence) { e.Looks[2].Running = 1 },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			e := full()
			spoil(&e)
			require.Contains(t, fmt.Sprint(shortcomings(e)), want)
		})
	}
}

func TestTheHourIsTheHourOfProductionThirtyTimesFaster(t *testing.T) {
	t.Parallel()
	b := allowed()
	require.Equal(t, 4*time.Second, driftEvery)
	require.Equal(t, 4*time.Second+400*time.Millisecond+time.Second+5*time.Second, b.Drift)
	require.Equal(t, 2*time.Second+200*time.Millisecond+300*time.Millisecond+5*time.Second, b.Health)
	require.Equal(t, time.Minute, b.Orphan)
	for _, s := range schedules() {
		require.LessOrEqual(t, s.Every, gcEvery, s.ID)
		require.Equal(t, s.ID == gc.Schedule, s.Input != nil, s.ID)
	}
	require.Equal(t, gc.Input{MinAge: 20 * time.Second}, schedules()[0].Input)
}

// What one proxy is planned to suffer must not hide what another part is about.
func TestNoProxyPlaysTwoParts(t *testing.T) {
	t.Parallel()
	parts := map[int]int{}
	for _, n := range []numbers{killed, refusing, terminated, unseen, asked, refusers} {
		for i := range n.count {
			parts[n.at(i)]++
		}
	}
	for n, times := range parts {
		require.Equal(t, 1, times, n)
		require.Less(t, n, proxies)
	}
	require.Greater(t, 2*refusers.count, proxies-ends, "more than half of those that live open the breaker")
	require.Less(t, ends/2+lagging, (proxies-ends/2)/10+1, "a sweep that believes Visibility is not saved by its cap")
}
