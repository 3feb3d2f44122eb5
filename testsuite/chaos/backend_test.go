package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func asked(zone string, attempt int) providers.CreateRequest {
	return providers.CreateRequest{
		Name: "a", UID: ours, Attempt: attempt, Installation: installation, Placement: providers.Placement{Zone: zone},
	}
}

func create(t *testing.T, b *backend, zone string, attempt int) string {
	t.Helper()
	id, err := b.Create(t.Context(), asked(zone, attempt))
	require.NoError(t, err)
	return id
}

func TestARepeatedCreateMakesNothing(t *testing.T) {
	t.Parallel()
	b := newBackend()
	made := create(t, b, zones[0], 1)
	require.Equal(t, made, create(t, b, zones[0], 1))
	held, log := b.record()
	require.Len(t, held, 1)
	require.Len(t, log, 1)
	require.Zero(t, judge(evidence{Log: log}).Duplicates)
}

// What a name alone would hide is seen here.
func TestACreateTooManyIsADuplicate(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]struct {
		zone    string
		attempt int
	}{"another attempt": {zones[0], 2}, "another zone": {zones[1], 1}} {
		b := newBackend()
		create(t, b, zones[0], 1)
		create(t, b, again.zone, again.attempt)
		_, log := b.record()
		require.Equal(t, 1, judge(evidence{Log: log}).Duplicates, name)
	}
}

func TestADeleteThatIsSkippedLeaks(t *testing.T) {
	t.Parallel()
	b := newBackend()
	create(t, b, zones[0], 1)
	held, log := b.record()
	e := evidence{Wishes: []wish{{Name: "a"}}, Held: held, Log: log}
	require.Equal(t, 1, judge(e).Leaks)

	require.NoError(t, b.Delete(t.Context(), held[0].ID))
	_, err := b.Get(t.Context(), held[0].ID)
	require.NoError(t, err, "it takes its time")
	b.finishDeletes(zones[0])
	e.Held, e.Log = b.record()
	require.True(t, judge(e).clean())
	require.Len(t, e.Log, 2)
}

func TestALateFailureIsWrittenDownAsOne(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.failNext(zones[0], providers.ErrQuotaExceeded)
	id := create(t, b, zones[0], 1)
	held, _ := b.record()
	require.True(t, held[0].Failed)
	listed, err := b.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.Equal(t, providers.StateStopped, listed[0].State)
	require.Equal(t, ours, listed[0].UID)
	require.NoError(t, b.Delete(t.Context(), id))
	held, log := b.record()
	require.Empty(t, held)
	require.Len(t, log, 2)
}

func TestIDsOfAllZonesAreListedAndFound(t *testing.T) {
	t.Parallel()
	b := newBackend()
	for i, zone := range zones {
		id := create(t, b, zone, i)
		b.alter(id, (*fake.Provider).Finish)
	}
	all, err := b.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, all, len(zones))
	for _, listed := range all {
		got, err := b.Get(t.Context(), listed.ID)
		require.NoError(t, err)
		require.Equal(t, listed.ID, got.ID)
		require.Equal(t, providers.StateRunning, got.State)
	}
	_, err = b.Create(t.Context(), asked("zone-z", 1))
	require.ErrorIs(t, err, providers.ErrPermanent)
	_, err = b.Get(t.Context(), "nonsense")
	require.ErrorIs(t, err, providers.ErrPermanent)
}
