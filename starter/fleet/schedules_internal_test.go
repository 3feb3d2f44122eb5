package fleet

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// guarded is a server that lets nobody make a schedule.
type guarded struct {
	client.Client
	schedules denying
}

func (g guarded) ScheduleClient() client.ScheduleClient { return g.schedules }

// denying are its schedules: it shows the one that is there.
type denying struct {
	client.ScheduleClient
	there *client.ScheduleDescription
}

func (d denying) Create(context.Context, client.ScheduleOptions) (client.ScheduleHandle, error) {
	return nil, serviceerror.NewPermissionDenied("may not", "")
}

func (d denying) GetHandle(context.Context, string) client.ScheduleHandle { return one{there: d.there} }

type one struct {
	client.ScheduleHandle
	there *client.ScheduleDescription
}

func (d one) Describe(context.Context) (*client.ScheduleDescription, error) {
	if d.there == nil {
		return nil, serviceerror.NewNotFound("no such schedule")
	}
	return d.there, nil
}

func (d one) Update(context.Context, client.ScheduleUpdateOptions) error {
	return serviceerror.NewPermissionDenied("may not", "")
}

func TestAScheduleThatCannotBeMadeNamesTheCommandThatDoes(t *testing.T) {
	t.Parallel()
	s := OrphanGC()
	as := func(s Schedule) *client.ScheduleDescription {
		spec := s.spec()
		return &client.ScheduleDescription{Schedule: client.Schedule{
			Spec: &spec, Action: New(nil, "test").action(s),
			Policy: &client.SchedulePolicies{Overlap: overlap, CatchupWindow: catchUp},
		}}
	}
	other := s
	other.Every *= 2
	for name, tc := range map[string]struct {
		there *client.ScheduleDescription
		want  string
	}{
		"it is not there": {nil, "run: temporal schedule create --schedule-id orphan-gc --interval 10m0s --jitter 1m0s " +
			"--overlap-policy Skip --catchup-window 10m0s --workflow-id orphan-gc --type OrphanGC " +
			"--task-queue egressfleet --execution-timeout 20m0s"},
		"it is another one":     {as(other), "run: temporal schedule update --schedule-id orphan-gc"},
		"it is as it is wanted": {as(s), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := New(guarded{schedules: denying{there: tc.there}}, "test").EnsureSchedules(t.Context(), s)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			require.ErrorIs(t, err, ErrUnavailable)
		})
	}
}
