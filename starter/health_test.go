package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/health"
)

// rounds answers what is asked about the health round, and records it.
type rounds struct {
	*fakeFleet
	result health.Result
	fault  error
	asked  []string
}

func (f *rounds) RunSweep(_ context.Context, s fleet.Schedule, _, result any) error {
	f.asked = append(f.asked, "run "+s.ID)
	if f.fault != nil {
		return f.fault
	}
	raw, err := json.Marshal(f.result)
	return errors.Join(err, json.Unmarshal(raw, result))
}

func (f *rounds) PauseSchedule(_ context.Context, schedule, note string) error {
	f.asked = append(f.asked, "pause "+schedule+" because "+note)
	return f.fault
}

func (f *rounds) ResumeSchedule(_ context.Context, schedule, note string) error {
	f.asked = append(f.asked, "resume "+schedule+" because "+note)
	return f.fault
}

func (f *rounds) ScheduleState(_ context.Context, schedule string) (fleet.ScheduleState, error) {
	f.asked = append(f.asked, "status "+schedule)
	return fleet.ScheduleState{
		ID: schedule, Every: time.Minute, LastSuccess: noon.Add(-40 * time.Second), LastRun: noon.Add(-42 * time.Second),
		NextRun: noon.Add(18 * time.Second),
	}, f.fault
}

func TestARoundIsATableOfProvidersAndOfWhatHasChanged(t *testing.T) {
	t.Parallel()
	const head = "PROVIDER  PASSED  FAILED  UNDECIDED  BREAKER  OVERDUE  REPLACED\n"
	for name, c := range map[string]struct {
		result health.Result
		want   string
	}{
		"nothing runs": {health.Result{}, "no running proxies\n"},
		"all is well": {
			health.Result{Providers: []health.Provider{{Name: "gcp", Tally: activities.Tally{Passed: 4}}}},
			head + "gcp       4       0       0          closed   0        -\n",
		},
		"one was replaced": {
			health.Result{Providers: []health.Provider{{
				Name: "gcp", Tally: activities.Tally{Passed: 3, Failed: 2}, Failing: 2, Replaced: []string{"default/a"},
			}}},
			head + "gcp       3       2       0          closed   2        default/a\n",
		},
		"most fail": {
			health.Result{Providers: []health.Provider{{
				Name: "gcp", Tally: activities.Tally{Passed: 1, Failed: 3}, Failing: 3, Breaker: true,
			}}},
			head + "gcp       1       3       0          OPEN     3        -\n" +
				"\ngcp: more than half fail at once, nothing is replaced\n",
		},
		"some changed": {
			health.Result{
				Providers: []health.Provider{{Name: "gcp", Tally: activities.Tally{Passed: 1, Failed: 1, Undecided: 1}}},
				Changed: []activities.Change{
					{Proxy: "default/a", Healthy: true, Reason: v1.ReasonHealthy, Text: "200"},
					{Proxy: "default/b", Reason: v1.ReasonRefused, Text: "403\nForbidden"},
					{Proxy: "default/c", Reason: v1.ReasonInconclusive},
				},
				Unlisted: 2,
			},
			head + "gcp       1       1       1          closed   0        -\n" +
				"\nPROXY      HEALTH     REASON        FOUND\n" +
				"default/a  healthy    Healthy       200\n" +
				"default/b  unhealthy  Refused       403 Forbidden\n" +
				"default/c  unknown    Inconclusive  -\n" +
				"\n2 more changes are not listed\n",
		},
		"parts failed": {
			health.Result{
				Providers: []health.Provider{{Name: "gcp", Failing: 1, Fault: &activities.Fault{Text: "no\nanswer"}}},
				Faults:    []activities.Fault{{Text: "timed out"}}, Untold: 1,
			},
			head + "gcp       0       0       0          closed   1        -\n" +
				"\ngcp: could not be asked for replacements: no answer\n" +
				"\n1 changes could not be told; the next round does\n" +
				"\na batch failed: timed out\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &rounds{fakeFleet: &fakeFleet{}, result: c.result}
			out, errOut, code := run(t.Context(), f, "", "health", "run")
			require.Zero(t, code, errOut)
			require.Equal(t, c.want, out)
			require.Equal(t, []string{"run health-round"}, f.asked)
		})
	}
}

func TestARoundIsJSONWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	want := health.Result{Probed: 1, Providers: []health.Provider{{Name: "gcp", Tally: activities.Tally{Passed: 1}}}}
	f := &rounds{fakeFleet: &fakeFleet{}, result: want}
	out, errOut, code := run(t.Context(), f, "", "health", "run", "-o", "json")
	require.Zero(t, code, errOut)
	var got health.Result
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, want, got)
}

func (*rounds) LastFailure(context.Context, string) (at time.Time, failure, err error) {
	return time.Time{}, nil, nil
}

func (f *rounds) LastResult(context.Context, string, any) (time.Time, error) {
	return time.Time{}, fleet.ErrNoRun
}

func TestTheScheduleOfRoundsIsTurnedAndShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args        []string
		asked, want string
	}{
		"paused": {
			[]string{"pause", "--reason", "lab moves"}, "pause health-round because lab moves", "health-round: paused\n",
		},
		"resumed": {[]string{"resume"}, "resume health-round because starter resume", "health-round: resumed\n"},
		"shown": {
			[]string{"status"},
			"status health-round",
			"health-round: every 1m0s\nlast success: 40s ago\nlast run:     42s ago\nnext run:     in 18s\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &rounds{fakeFleet: &fakeFleet{}}
			out, errOut, code := run(t.Context(), f, "", append([]string{"health"}, c.args...)...)
			require.Zero(t, code, errOut)
			require.Equal(t, c.want, out)
			require.Equal(t, []string{c.asked}, f.asked)

			f.fault = fleet.ErrUnavailable
			_, errOut, code = run(t.Context(), f, "", append([]string{"health"}, c.args...)...)
			require.Equal(t, exitUnavailable, code)
			require.Contains(t, errOut, "health-round")
		})
	}
}

func TestARoundThatFailedIsAnError(t *testing.T) {
	t.Parallel()
	f := &rounds{fakeFleet: &fakeFleet{}, fault: fleet.ErrUnavailable}
	out, errOut, code := run(t.Context(), f, "", "health", "run")
	require.Equal(t, exitUnavailable, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "health: ")
	_, _, code = run(t.Context(), &rounds{fakeFleet: &fakeFleet{}}, "", "health", "run", "everything")
	require.Equal(t, exitUsage, code)
}
