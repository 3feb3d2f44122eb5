package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/starter/terminal"
	"github.com/egressfleet/egressfleet/workflows/gc"
)

func TestWhenALineIsDue(t *testing.T) {
	t.Parallel()
	said := utterance{"a", noon}
	for name, c := range map[string]struct {
		said   utterance
		what   string
		waited time.Duration
		now    time.Time
		want   bool
	}{
		"what takes a moment":             {utterance{}, "a", slow - 1, noon, false},
		"what takes longer":               {utterance{}, "a", slow, noon, true},
		"the same, soon after":            {said, "a", time.Minute, noon.Add(sameEvery - 1), false},
		"the same, later":                 {said, "a", time.Minute, noon.Add(sameEvery), true},
		"something else, at once":         {said, "b", time.Minute, noon.Add(newsEvery - 1), false},
		"something else, after a moment":  {said, "b", time.Minute, noon.Add(newsEvery), true},
		"the first, of a clock of before": {utterance{}, "a", -time.Hour, noon, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.said.due(c.what, c.waited, c.now))
		})
	}
}

// patient is a fleet that lets a command wait for so many ticks, a second each.
type patient struct {
	*fakeFleet
	ticks chan time.Time
	now   time.Time
}

func patientOf(f *fakeFleet) *patient {
	return &patient{fakeFleet: f, ticks: make(chan time.Time), now: noon}
}

func (p *patient) pass(seconds int) {
	for range seconds {
		p.now = p.now.Add(time.Second)
		p.ticks <- p.now
	}
	p.ticks <- time.Time{} // once it is taken, the one before has been told
}

func (p *patient) WaitGone(context.Context, string, string) error {
	p.pass(3)
	return nil
}

func (p *patient) run(t *testing.T, screen terminal.Screen, f Fleet, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	at := func() terminal.Screen { return screen }
	cmd := NewCommand(Streams{In: strings.NewReader(""), Out: &o, Err: &e, OutScreen: at, ErrScreen: at}, Outside{
		Connect: func(context.Context, Temporal) (Fleet, func(), error) { return f, func() {}, nil },
		Now:     func() time.Time { return noon },
		Every:   func(time.Duration) (<-chan time.Time, func()) { return p.ticks, func() {} },
		After: func(time.Duration) <-chan time.Time {
			due := make(chan time.Time)
			close(due)
			return due
		},
	})
	cmd.SetArgs(args)
	code = ExitCode(&e, cmd.ExecuteContext(t.Context()))
	return o.String(), e.String(), code
}

func TestWhatTakesLongIsToldInLines(t *testing.T) {
	t.Parallel()
	p := patientOf(fleetOfThree())
	out, errOut, code := p.run(t, terminal.Screen{}, p, "delete", "runs", "waits", "--wait")
	require.Zero(t, code)
	require.Equal(t, "default/runs is gone\ndefault/waits is gone\n", out)
	require.Equal(t, "waiting until default/runs is gone, 1 of 2 (2s)\n", errOut, "the second one is news, and too soon")
}

func TestWhatTakesLongIsToldInOneLineOfATerminal(t *testing.T) {
	t.Parallel()
	p := patientOf(fleetOfThree())
	out, errOut, code := p.run(t, terminal.Screen{Width: 30}, p, "delete", "runs", "--wait")
	require.Zero(t, code)
	require.Equal(t, "default/runs is gone\n", out)
	const line = terminal.Erase + "waiting until default/runs i…"
	require.Equal(t, line+line+terminal.Erase, errOut, "it is drawn anew, and gone in the end")
}

// lingering is a backend that still lists an instance of no proxy at the first looks.
type lingering struct {
	*patient
	looks int
}

func (l *lingering) RunSweep(_ context.Context, _ fleet.Schedule, _, result any) error {
	l.looks++
	if l.looks > 1 {
		l.pass(3)
		*result.(*gc.Result) = gc.Result{}
		return nil
	}
	s := gc.Sweep{}
	s.Provider, s.Listed = "gcp", 2
	*result.(*gc.Result) = gc.Result{Sweeps: []gc.Sweep{s}}
	return nil
}

// Instances that --skip-cleanup left are waited for, and that is said.
func TestDrainTellsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	l := &lingering{patient: patientOf(&fakeFleet{})}
	out, errOut, code := l.run(t, terminal.Screen{}, l, "drain", "--all", "--yes")
	require.Zero(t, code, errOut)
	require.Equal(t, "nothing is left\n", out)
	require.Equal(t, "gcp still lists 2; no proxy has them: orphan collection deletes what is proven, "+
		"\"starter gc plan\" says what and why (2s)\n", errOut)
}
