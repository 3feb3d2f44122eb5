package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/egressfleet/egressfleet/activities"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/workflows/openproxy"
)

// checks answers what a check for open proxies comes to.
type checks struct {
	fakeFleet
	result openproxy.Result
	fault  error
	in     openproxy.Input
	turned []string
}

func (c *checks) RunSweep(_ context.Context, s fleet.Schedule, input, result any) error {
	if s.ID != "open-proxy-check" {
		return errors.New("another schedule: " + s.ID)
	}
	c.in, *result.(*openproxy.Result) = input.(openproxy.Input), c.result
	return c.fault
}

func (c *checks) ScheduleState(_ context.Context, schedule string) (fleet.ScheduleState, error) {
	return fleet.ScheduleState{ID: schedule, Every: 10 * time.Minute}, c.fault
}

func (c *checks) PauseSchedule(_ context.Context, schedule, note string) error {
	c.turned = append(c.turned, schedule+": "+note)
	return nil
}

func (*checks) LastFailure(context.Context, string) (at time.Time, failure, err error) {
	return time.Time{}, nil, nil
}

func (c *checks) LastResult(context.Context, string, any) (time.Time, error) {
	return time.Time{}, fleet.ErrNoRun
}

var found = openproxy.Result{
	Asked: 4, Counts: map[string]activities.Openings{"local": {Closed: 1}, "gcp": {Open: 1, Unknown: 2}},
	Open: []string{"default/a"},
	Changed: []activities.OpenProxyChange{{
		Proxy: "default/a", Status: v1.ConditionTrue, Reason: v1.ReasonOpenProxy, Text: "granted:\n200",
	}},
	Untold: 1, Unlisted: 3, Faults: []activities.Fault{{Text: "Visibility is away"}},
}

func TestOpenRunShowsWhoLetsStrangersIn(t *testing.T) {
	t.Parallel()
	c := &checks{result: found}
	out, errOut, code := run(t.Context(), c, "", "open", "run", "--patience", "5s")
	require.Zero(t, code, errOut)
	require.Equal(t, 5*time.Second, c.in.Patience)
	require.Equal(t, `PROVIDER  OPEN  CLOSED  UNKNOWN
gcp       1     0       2
local     0     1       0

open: default/a

PROXY      NOW   REASON     FOUND
default/a  True  OpenProxy  granted: 200

a page failed: Visibility is away

3 lines are left out

1 changes could not be told; the next check does
`, out)
	out, _, code = run(t.Context(), c, "", "open", "run", "-o", "json")
	require.Zero(t, code)
	require.Contains(t, out, `"open": [`)
	_, errOut, code = run(t.Context(), c, "", "open", "pause", "--reason", "moving")
	require.Zero(t, code, errOut)
	require.Equal(t, []string{"open-proxy-check: moving"}, c.turned)
}

func TestOpenRunWithoutASecondProberFails(t *testing.T) {
	t.Parallel()
	c := &checks{
		result: openproxy.Result{Counts: map[string]activities.Openings{"gcp": {Unknown: 2}}, NoSecondProber: true},
		fault: temporal.NewNonRetryableApplicationError(
			"start a worker with the role outside", openproxy.ErrNoSecondProber, nil),
	}
	out, errOut, code := run(t.Context(), c, "", "open", "run")
	require.Equal(t, exitFailure, code)
	require.Contains(t, out, "gcp       0     0       2")
	require.Equal(t, "starter: open: start a worker with the role outside\n", errOut)
	c.fault = fleet.ErrUnavailable
	out, errOut, code = run(t.Context(), c, "", "open", "run")
	require.Equal(t, exitUnavailable, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "open: "+fleet.ErrUnavailable.Error())
}

func TestAScheduleThatIsNotThereIsSaidToBeMadeByWhom(t *testing.T) {
	t.Parallel()
	c := &checks{}
	out, errOut, code := run(t.Context(), c, "", "open", "status")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "open-proxy-check: every 10m0s\n")
	c.fault = fmt.Errorf("%w: of Temporal", fleet.ErrNoSchedule)
	for command, who := range map[string]string{"open": "a worker with the role outside", "drift": "a worker"} {
		_, errOut, code = run(t.Context(), c, "", command, "status")
		require.Equal(t, exitFailure, code)
		require.Contains(t, errOut, "it is not there; "+who+" makes it when it starts")
	}
	c.fault = fleet.ErrUnavailable
	_, errOut, _ = run(t.Context(), c, "", "open", "status")
	require.Contains(t, errOut, fleet.ErrUnavailable.Error())
}
