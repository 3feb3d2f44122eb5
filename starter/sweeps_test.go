package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/activities"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/drift"
	"github.com/egressfleet/egressfleet/workflows/gc"
	"github.com/egressfleet/egressfleet/workflows/providercheck"
)

// fakeSweeps answers with one result, and records what was asked.
type fakeSweeps struct {
	result any
	fail   error     // of a run
	noRun  bool      // none is kept
	ended  time.Time // what is kept; zero is noon
	failed time.Time
	how    error // it failed
	state  fleet.ScheduleState
	asked  []string
}

func (f *fakeSweeps) RunSweep(_ context.Context, s fleet.Schedule, input, result any) error {
	in, _ := json.Marshal(input)
	f.asked = append(f.asked, fmt.Sprintf("run %s %s", s.ID, in))
	return errors.Join(f.fail, f.fill(result))
}

func (f *fakeSweeps) fill(result any) error {
	raw, err := json.Marshal(f.result)
	return errors.Join(err, json.Unmarshal(raw, result))
}

func (f *fakeSweeps) PauseSchedule(_ context.Context, schedule, note string) error {
	f.asked = append(f.asked, "pause "+schedule+" because "+note)
	return f.fail
}

func (f *fakeSweeps) ResumeSchedule(_ context.Context, schedule, note string) error {
	f.asked = append(f.asked, "resume "+schedule+" because "+note)
	return f.fail
}

func (f *fakeSweeps) ScheduleState(_ context.Context, schedule string) (fleet.ScheduleState, error) {
	s := f.state
	s.ID = schedule
	return s, f.fail
}

func (f *fakeSweeps) LastResult(_ context.Context, _ string, result any) (time.Time, error) {
	if f.noRun {
		return time.Time{}, fleet.ErrNoRun
	}
	if f.ended.IsZero() {
		return noon, f.fill(result)
	}
	return f.ended, f.fill(result)
}

func (f *fakeSweeps) LastFailure(context.Context, string) (at time.Time, failure, err error) {
	return f.failed, f.how, nil
}

func swept() gc.Result {
	return gc.Result{Sweeps: []gc.Sweep{
		{SweepReport: activities.SweepReport{
			Provider: "gcp", Listed: 9, Living: 4, Young: 1, Convicts: 2, Doubts: 2, Deleted: 1, Unlisted: 3,
			Omitted: []string{"zone-b", "zone-c"},
			Findings: []activities.Finding{
				{
					ID: "zone-a/x", Kind: "instance", Owner: "default/x", CreatedAt: noon.Add(-time.Hour),
					Why: "OwnerClosed", Proof: "it is\nTerminated", Convict: true, Deleted: true,
				},
				{
					ID: "zone-a/y", Kind: "volume", Owner: "default/y",
					Why: "OwnerMissing", Proof: "none", Convict: true, Error: "409",
				},
				{ID: "zone-a/z", Kind: "instance", Why: "NoOwner", Proof: "it carries no owner mark"},
			},
		}},
		{
			SweepReport: activities.SweepReport{Provider: "kvm"},
			Fault:       &activities.Fault{Class: providers.ErrTransient, Text: "no\nroute"},
		},
	}}
}

const sweptTable = `PROVIDER  LISTED  LIVING  YOUNG  DOUBTS  ORPHANS  DELETED
gcp       9       4       1      2       2        1
kvm       0       0       0      0       0        0

-        ID        KIND      OWNER      AGE  WHY           PROOF
deleted  zone-a/x  instance  default/x  1h   OwnerClosed   it is Terminated
failed   zone-a/y  volume    default/y  -    OwnerMissing  none
kept     zone-a/z  instance  -          -    NoOwner       it carries no owner mark

gcp: 3 more are not listed

gcp: could not be listed: zone-b, zone-c

gcp: zone-a/y was not deleted: 409

kvm was skipped: no route
`

func planned() gc.Result {
	return gc.Result{Sweeps: []gc.Sweep{{SweepReport: activities.SweepReport{
		Provider: "gcp", Listed: 1, Convicts: 1,
		Findings: []activities.Finding{{ID: "zone-a/x", Kind: "instance", Why: "OwnerClosed", Proof: "ended", Convict: true}},
	}}}}
}

func drifting() drift.Result {
	return drift.Result{Sweeps: []drift.Sweep{
		{DriftReport: activities.DriftReport{
			Provider: "gcp", Running: 5, Listed: 4, Hinted: 2, Unlisted: 1, Omitted: []string{"zone-b"},
			Hints: []activities.Hint{{Proxy: "default/a", ID: "zone-a/x", Reason: "is not listed", Error: "no\nworker"}},
		}},
		{DriftReport: activities.DriftReport{Provider: "kvm"}, Fault: &activities.Fault{Text: "no route"}},
	}}
}

const driftingTable = `PROVIDER  RUNNING  LISTED  HINTS
gcp       5        4       2
kvm       0        0       0

PROXY      ID        NOTICED        ERROR
default/a  zone-a/x  is not listed  no worker

gcp: 1 more are not listed

gcp: could not be listed: zone-b

kvm was skipped: no route
`

func round() providercheck.Result {
	return providercheck.Result{
		At: noon.Add(-2 * time.Minute),
		Providers: []activities.ProviderHealth{
			{Provider: "bare"},
			{Provider: "kvm", Supported: true, Targets: []providers.TargetStatus{
				{Target: "host-a", Ready: true, Reason: "Reachable"},
				{Target: "host-b", Reason: "Timeout", Message: "after 5 s"},
			}},
		},
		Transitions: []providercheck.Transition{{Provider: "kvm", Target: "host-b", From: "Reachable", To: "Timeout"}},
	}
}

const roundTable = `PROVIDER  TARGET  READY  REASON       MESSAGE          AGE
bare      -       -      unsupported  it has no check  2m
kvm       host-a  yes    Reachable    -                2m
kvm       host-b  no     Timeout      after 5 s        2m

kvm host-b: from Reachable to Timeout
`

func TestSweepsByHand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args   string
		result any
		asked  string
		want   string
	}{
		"gc plan": {
			"gc plan", planned(), `run orphan-gc {"plan":true}`,
			"PROVIDER  LISTED  LIVING  YOUNG  DOUBTS  ORPHANS  DELETED\n" +
				"gcp       1       0       0      0       1        0\n\n" +
				"-       ID        KIND      OWNER  AGE  WHY          PROOF\n" +
				"orphan  zone-a/x  instance  -      -    OwnerClosed  ended\n",
		},
		"gc run": {"gc run", swept(), `run orphan-gc {}`, sweptTable},
		"gc run with everything": {
			"gc run --provider gcp --force --include-unproven --everything", swept(),
			`run orphan-gc {"providers":["gcp"],"force":true,"includeUnproven":true,"everything":true}`, sweptTable,
		},
		"drift plan": {
			"drift plan --provider gcp", drifting(),
			`run drift-sweep {"providers":["gcp"],"plan":true}`, driftingTable,
		},
		"drift run": {"drift run", drifting(), `run drift-sweep {}`, driftingTable},
		"check run": {"check run --provider kvm", round(), `run provider-check {"providers":["kvm"]}`, roundTable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &fakeSweeps{result: tc.result}
			out, errOut, code := run(t.Context(), &fakeFleet{Sweeps: s}, "", strings.Fields(tc.args)...)
			require.Zero(t, code, errOut)
			require.Equal(t, tc.want, out)
			require.Equal(t, []string{tc.asked}, s.asked)

			out, errOut, code = run(t.Context(), &fakeFleet{Sweeps: s}, "", append(strings.Fields(tc.args), "-o", "json")...)
			require.Zero(t, code, errOut)
			want, err := json.Marshal(tc.result)
			require.NoError(t, err)
			require.JSONEq(t, string(want), out)
		})
	}
}

func TestASweepThatWasRefusedShowsItsFindingsAndFails(t *testing.T) {
	t.Parallel()
	r := planned()
	r.Sweeps[0].Refused = "6 of 6 would be deleted"
	s := &fakeSweeps{result: r, fail: temporal.NewNonRetryableApplicationError("too many", gc.ErrRefused, nil)}
	out, errOut, code := run(t.Context(), &fakeFleet{Sweeps: s}, "", "gc", "run")
	require.Equal(t, 1, code)
	require.Contains(t, out, "kept  zone-a/x")
	require.Contains(t, out, "gcp: 6 of 6 would be deleted\n")
	require.Contains(t, errOut, "too many orphans")
}

func TestASweepThatFails(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"gc run", "gc plan", "drift run", "drift plan", "check run", "gc pause", "gc resume", "gc status",
	} {
		s := &fakeSweeps{fail: fmt.Errorf("%w: gone", fleet.ErrUnavailable)}
		out, errOut, code := run(t.Context(), &fakeFleet{Sweeps: s}, "", strings.Fields(args)...)
		require.Equal(t, exitUnavailable, code, args)
		require.Empty(t, out, args)
		require.Contains(t, errOut, "unavailable", args)
	}
}

func TestSchedulesArePausedAndResumed(t *testing.T) {
	t.Parallel()
	for _, use := range []string{"gc orphan-gc", "drift drift-sweep", "check provider-check"} {
		name, schedule, _ := strings.Cut(use, " ")
		s := &fakeSweeps{}
		f := &fakeFleet{Sweeps: s}
		out, errOut, code := run(t.Context(), f, "", name, "pause", "--reason", "audit")
		require.Zero(t, code, errOut)
		require.Equal(t, schedule+": paused\n", out)
		out, errOut, code = run(t.Context(), f, "", name, "resume")
		require.Zero(t, code, errOut)
		require.Equal(t, schedule+": resumed\n", out)
		require.Equal(t, []string{
			"pause " + schedule + " because audit", "resume " + schedule + " because starter resume",
		}, s.asked)
	}
}

func TestTheStatusOfASchedule(t *testing.T) {
	t.Parallel()
	state := fleet.ScheduleState{
		Every: time.Minute, LastRun: noon.Add(-30 * time.Second), LastSuccess: noon.Add(-90 * time.Second),
		NextRun: noon.Add(30 * time.Second),
	}
	paused := state
	paused.Paused, paused.Note = true, "audit"
	const times = "last success: 1m30s ago\nlast run:     30s ago\n"
	for name, tc := range map[string]struct {
		args  string
		sweep *fakeSweeps
		want  string
	}{
		"gc": {
			"gc status", &fakeSweeps{state: state, result: swept()},
			"orphan-gc: every 1m0s\n" + times + "next run:     in 30s\n\n" + sweptTable,
		},
		"drift": {
			"drift status", &fakeSweeps{state: paused, result: drifting()},
			"drift-sweep: every 1m0s, PAUSED: audit\n" + times + "\n" + driftingTable,
		},
		"check": {
			"check status", &fakeSweeps{state: state, result: round()},
			"provider-check: every 1m0s\n" + times + "next run:     in 30s\n\n" + roundTable,
		},
		"refused since": {
			"gc status", &fakeSweeps{
				state: state, result: gc.Result{}, ended: noon.Add(-90 * time.Second), failed: noon.Add(-30 * time.Second),
				how: temporal.NewApplicationError("gcp: 9 of 10\nare orphans", gc.ErrRefused),
			},
			"orphan-gc: every 1m0s\n" + times + "next run:     in 30s\n" +
				"last failure: 30s ago; it was REFUSED: gcp: 9 of 10 are orphans\n\n" +
				"PROVIDER  LISTED  LIVING  YOUNG  DOUBTS  ORPHANS  DELETED\n",
		},
		"failed, and well since": {
			"check status", &fakeSweeps{
				state: state, result: round(), failed: noon.Add(-time.Second), how: errors.New("no worker"),
			},
			"provider-check: every 1m0s\n" + times + "next run:     in 30s\n\n" + roundTable,
		},
		"failed, and never well": {
			"drift status", &fakeSweeps{
				state: fleet.ScheduleState{Every: time.Minute, LastRun: noon.Add(-time.Minute)}, noRun: true,
				failed: noon.Add(-time.Second), how: errors.New("no\nworker"),
			},
			"drift-sweep: every 1m0s\nlast success: none that Temporal keeps\nlast run:     1m0s ago\n" +
				"last failure: 1s ago; no worker\n",
		},
		"never": {
			"gc status", &fakeSweeps{state: fleet.ScheduleState{Every: time.Minute}, noRun: true},
			"orphan-gc: every 1m0s\nlast success: none that Temporal keeps\nlast run:     none that Temporal keeps\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, code := run(t.Context(), &fakeFleet{Sweeps: tc.sweep}, "", strings.Fields(tc.args)...)
			require.Zero(t, code, errOut)
			require.Equal(t, tc.want, out)
		})
	}
	f := &fakeFleet{Sweeps: &fakeSweeps{state: paused, result: round()}}
	out, _, code := run(t.Context(), f, "", "check", "status", "-o", "json")
	require.Zero(t, code)
	var object struct {
		ID, Every string
		Paused    bool
		Result    providercheck.Result
	}
	require.NoError(t, json.Unmarshal([]byte(out), &object))
	require.Equal(t, "provider-check", object.ID)
	require.Equal(t, "1m0s", object.Every)
	require.True(t, object.Paused)
	require.Equal(t, round(), object.Result)
}
