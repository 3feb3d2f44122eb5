package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

var (
	dawn    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	healthy = true
)

func at(seconds int) time.Time { return dawn.Add(time.Duration(seconds) * time.Second) }

func said(seconds int, reason string) v1.Event { return v1.Event{At: at(seconds), Reason: reason} }

func lives(name, id string, timeline ...v1.Event) life {
	l := life{Name: name, UID: "u-" + name, Timeline: timeline}
	l.Proxy.Status = v1.ProxyStatus{Phase: v1.PhaseRunning, Healthy: &healthy, ProviderID: id}
	return l
}

// hour is what a good hour leaves: a was lost and made again, b refused and was
// replaced, c was terminated, d only lived.
func hour() evidence {
	return evidence{
		Bounds: limits{Drift: 10 * time.Second, Health: 7 * time.Second, Orphan: time.Minute}, End: at(200),
		Lives: []life{
			lives("a", "mem/a", said(12, v1.ReasonInstanceLost)),
			lives("b", "mem/b", said(53, v1.ReasonRefused), said(66, requested)),
			{Name: "c", UID: "u-c", Terminated: at(20)},
			lives("d", "mem/d"),
		},
		Log: []happening{
			{at(1), came, "u-a", "1"},
			{at(1), came, "u-b", "2"},
			{at(1), came, "u-c", "3"},
			{at(1), came, "u-d", "4"},
			{at(10), lost, "u-a", "1"},
			{at(17), came, "u-a", "5"},
			{at(40), deleted, "u-c", "3"},
			{at(67), deleted, "u-b", "2"},
			{at(68), came, "u-b", "6"},
		},
		Held:       []providers.Instance{{ID: "mem/a", UID: "u-a"}, {ID: "mem/b", UID: "u-b"}, {ID: "mem/d", UID: "u-d"}},
		Refusals:   []refusal{{UID: "u-b", IP: "2", span: span{From: at(50)}}},
		TargetDown: span{at(20), at(45)}, ProviderOut: span{at(100), at(112)}, Mass: span{at(120), at(140)},
		Rounds: []round{{At: at(130), Overdue: 3, ProviderHealthNote: activities.ProviderHealthNote{Breaker: true}}},
	}
}

func TestAGoodHourIsClean(t *testing.T) {
	t.Parallel()
	v := judge(hour())
	require.Empty(t, v.Report)
	require.True(t, v.clean(hour().Bounds))
	require.Equal(t, 2*time.Second, v.DriftP95)
	require.Equal(t, 3*time.Second, v.HealthP95)
}

func TestWhatTheHourIsJudgedBy(t *testing.T) {
	t.Parallel()
	d := func(e *evidence) *life { return &e.Lives[3] }
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  verdict // without the report
		says  string
	}{
		"an instance of a living proxy is deleted": {
			func(e *evidence) {
				e.Log = append(e.Log, happening{at(80), deleted, "u-d", "4"})
				e.Held = e.Held[:2]
			},
			verdict{FalseDeletes: 1},
			"false delete: 4 of d",
		},
		"a replacement deletes twice": {
			func(e *evidence) { e.Log = append(e.Log, happening{at(80), deleted, "u-b", "6"}) },
			verdict{FalseDeletes: 1},
			"false delete: 6 of b",
		},
		"an instance is deleted before its proxy asks for that": {
			func(e *evidence) { e.Log[7].At = at(65) },
			verdict{FalseDeletes: 1},
			"false delete: 2 of b",
		},
		"an instance is deleted before its workflow is terminated": {
			func(e *evidence) { e.Log[6].At = at(19) },
			verdict{FalseDeletes: 1},
			"false delete: 3 of c",
		},
		"a proxy that serves is replaced": {
			func(e *evidence) {
				d(e).Timeline = append(d(e).Timeline, said(80, requested))
				e.Log = append(e.Log, happening{at(81), deleted, "u-d", "4"}, happening{at(82), came, "u-d", "7"})
			},
			verdict{FalseReplacements: 1},
			"of d, which served",
		},
		"what took the place of a refuser is replaced, too": {
			func(e *evidence) { e.Lives[1].Timeline = append(e.Lives[1].Timeline, said(70, requested)) },
			verdict{FalseReplacements: 1},
			"of b, which served",
		},
		"one that served again is replaced": {
			func(e *evidence) { e.Refusals[0].To = at(60) },
			verdict{FalseReplacements: 1},
			"of b, which served",
		},
		"one is replaced before it refuses": {
			func(e *evidence) { e.Lives[1].Timeline = []v1.Event{said(48, requested), said(53, v1.ReasonRefused)} },
			verdict{FalseReplacements: 1},
			"of b, which served",
		},
		"a refuser is replaced while the target is down": {
			func(e *evidence) { e.TargetDown.To = at(70) },
			verdict{FalseReplacements: 1},
			"of b while the target was down",
		},
		"a refuser is replaced just after the target went away": {
			func(e *evidence) { e.TargetDown = span{at(65), at(70)} }, verdict{}, "",
		},
		"a refuser is replaced while most fail": {
			func(e *evidence) { e.Mass.From = at(60) },
			verdict{FalseReplacements: 1},
			"of b while most proxies failed",
		},
		"a round replaces although its breaker is open": {
			func(e *evidence) { e.Rounds[0].Replaced = 1 },
			verdict{FalseReplacements: 1},
			"whose breaker was open",
		},
		"an instance is made though none was gone": {
			func(e *evidence) { e.Log = append(e.Log, happening{at(80), came, "u-d", "7"}) },
			verdict{FalseReplacements: 1},
			"d made an instance though none was gone",
		},
		"a loss is not noticed": {
			func(e *evidence) {
				e.Lives[0].Timeline = nil
				e.Log = append(e.Log[:5:5], e.Log[6:]...)
			},
			verdict{Unnoticed: 1, DriftP95: 190 * time.Second},
			"not noticed: the loss of 1 of a",
		},
		"a loss is not noticed, and the end is near": {
			func(e *evidence) {
				e.Lives[0].Timeline = nil
				e.Log, e.End = append(e.Log[:5:5], e.Log[6:]...), at(14)
			},
			verdict{Unnoticed: 1, DriftP95: 4 * time.Second},
			"not noticed: the loss of 1 of a",
		},
		"a loss is noticed by another instance alone": {
			func(e *evidence) { e.Lives[0].Timeline = nil }, verdict{DriftP95: 7 * time.Second}, "",
		},
		"a loss is noticed late": {
			func(e *evidence) { e.Lives[0].Timeline[0].At, e.Log[5].At = at(21), at(22) },
			verdict{DriftP95: 11 * time.Second},
			"",
		},
		"a refusal is not noticed": {
			func(e *evidence) { e.Lives[1].Timeline = e.Lives[1].Timeline[1:] },
			verdict{Unnoticed: 1, HealthP95: 150 * time.Second},
			"not noticed: that b refuses",
		},
		"a refusal is noticed late": {
			func(e *evidence) { e.Lives[1].Timeline[0].At = at(58) }, verdict{HealthP95: 8 * time.Second}, "",
		},
		"one that serves is blamed for the target": {
			func(e *evidence) { d(e).Timeline = []v1.Event{said(30, v1.ReasonNoEgress)} },
			verdict{Blamed: 1},
			"d is called NoEgress",
		},
		"one that is gone is called unreachable while the target is down": {
			func(e *evidence) {
				e.Lives[0].Timeline = append(e.Lives[0].Timeline, said(16, v1.ReasonUnreachable))
				e.TargetDown.From = at(11)
			}, verdict{}, "",
		},
		"the instance of a terminated workflow is left": {
			func(e *evidence) {
				e.Log = append(e.Log[:6:6], e.Log[7:]...)
				e.Held = append(e.Held, providers.Instance{ID: "mem/c", UID: "u-c"})
			},
			verdict{OrphansLeft: 1},
			"an orphan is left: mem/c",
		},
		"it stayed too long": {
			func(e *evidence) { e.Log[6].At = at(81) },
			verdict{OrphansLeft: 1},
			"stayed too long: 3 of c, for 1m1s",
		},
		"a living proxy has another instance beside its own": {
			func(e *evidence) { e.Held = append(e.Held, providers.Instance{ID: "mem/x", UID: "u-d"}) },
			verdict{OrphansLeft: 1},
			"an orphan is left: mem/x",
		},
		"a proxy is not healthy in the end": {
			func(e *evidence) { d(e).Proxy.Status.Healthy = nil },
			verdict{Unwell: 1},
			"not well in the end: d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := hour()
			c.spoil(&e)
			v := judge(e)
			report := strings.Join(v.Report, "\n")
			require.Contains(t, report, c.says)
			v.Report = nil
			if c.want.DriftP95 == 0 {
				c.want.DriftP95 = 2 * time.Second
			}
			if c.want.HealthP95 == 0 {
				c.want.HealthP95 = 3 * time.Second
			}
			require.Equal(t, c.want, v, report)
			bad := c.says != "" || v.DriftP95 > e.Bounds.Drift || v.HealthP95 > e.Bounds.Health
			require.Equal(t, !bad, v.clean(e.Bounds))
		})
	}
}

func TestP95(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 100 {
		all = append([]time.Duration{time.Duration(i + 1)}, all...)
	}
	require.EqualValues(t, 95, p95(all))
	require.EqualValues(t, 10, p95([]time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), "of ten it is the longest")
	require.Zero(t, p95(nil))
}

func TestTheLastLineSaysItAll(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.True(t, conclude(&out, full(), judge(full())), out.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, "fleet: proxies=200 false_deletes=0 false_replacements=0 drift_p95=2s health_p95=3s orphans_left=0",
		lines[len(lines)-1])

	poor := full()
	poor.Refused = 0
	require.False(t, conclude(&out, poor, judge(poor)), "a run without its troubles proves nothing")
	require.Contains(t, out.String(), "this run proves too little: listings that failed: 0, at least 3 have to be")
	late := full()
	late.Bounds.Health = 0
	require.False(t, conclude(&out, late, judge(late)))
}
