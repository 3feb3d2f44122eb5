package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/starter/fleet"
)

// askedFor answers for schedules by their ID.
type askedFor map[string]any

func (a askedFor) state(_ context.Context, id string) (fleet.ScheduleState, error) {
	switch is := a[id].(type) {
	case fleet.ScheduleState:
		return is, nil
	case error:
		return fleet.ScheduleState{}, is
	default:
		return fleet.ScheduleState{}, fleet.ErrNoSchedule
	}
}

func TestSchedulesAreShownAsTemporalHasThem(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 0)
	answers := askedFor{
		"orphan-gc":   fleet.ScheduleState{Every: 10 * time.Minute, LastSuccess: at},
		"drift-sweep": fleet.ScheduleState{Every: 2 * time.Minute, Paused: true, Made: at.Add(time.Second)},
	}
	p := newPlanned(answers.state, slog.New(slog.DiscardHandler))
	shown := func() string {
		text, err := testutil.CollectAndFormat(p, expfmt.TypeTextPlain, "egressfleet_schedule_paused",
			"egressfleet_schedule_interval_seconds", "egressfleet_schedule_last_success_timestamp_seconds")
		require.NoError(t, err)
		return string(text)
	}
	require.NotContains(t, shown(), "orphan-gc", "nobody was asked yet")
	p.look(t.Context())
	for _, want := range []string{
		"egressfleet_schedule_last_success_timestamp_seconds{schedule=\"orphan-gc\"} 1.7e+09\n",
		"egressfleet_schedule_last_success_timestamp_seconds{schedule=\"drift-sweep\"} 1.700000001e+09\n",
		"egressfleet_schedule_interval_seconds{schedule=\"drift-sweep\"} 120\n",
		"egressfleet_schedule_paused{schedule=\"drift-sweep\"} 1\n",
		"egressfleet_schedule_paused{schedule=\"orphan-gc\"} 0\n",
	} {
		require.Contains(t, shown(), want)
	}
	require.NotContains(t, shown(), "open-proxy-check", "there is no such schedule here")

	before := shown()
	answers["orphan-gc"] = errors.Join(fleet.ErrUnavailable)
	p.look(t.Context())
	require.Equal(t, before, shown(), "who cannot be asked for gets older by himself")
	delete(answers, "drift-sweep")
	p.look(t.Context())
	require.NotContains(t, shown(), "drift-sweep", "it is gone")
	require.Contains(t, shown(), "orphan-gc")
}
