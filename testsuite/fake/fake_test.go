package fake_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func request(name string) providers.CreateRequest {
	return providers.CreateRequest{Name: name, UID: "uid-" + name, Owner: "default/" + name, Port: 3128}
}

func create(t *testing.T, p providers.Provider, req providers.CreateRequest) string {
	t.Helper()
	id, err := p.Create(t.Context(), req)
	require.NoError(t, err)
	return id
}

func TestInstancesGetAddressesOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := fake.New("f")
	for _, want := range []string{"127.0.0.1", "127.0.0.2"} {
		got, err := p.Get(t.Context(), create(t, p, request("a"+want[len(want)-1:])))
		require.NoError(t, err)
		require.Equal(t, want, got.IP)
		require.Equal(t, providers.StateRunning, got.State)
		require.Equal(t, fake.DefaultInstallation, got.Installation)
	}
}

// Report 42: elotl/kip#76, a delete that says OK and does not come to its end.
func TestSlowDeleteKeepsTheInstanceUntilItIsFinished(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.WithSlowDelete())
	id := create(t, p, request("a"))
	require.NoError(t, p.Delete(t.Context(), id))
	got, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	require.True(t, got.Deleting)
	p.FinishDeletes()
	_, err = p.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrNotFound)
}

func TestProvisioningLastsUntilItIsFinished(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.WithProvisioning())
	id := create(t, p, request("a"))
	got, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, providers.StateProvisioning, got.State)
	require.Empty(t, got.IP)
	p.Finish(id)
	got, err = p.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, providers.StateRunning, got.State)
	require.NotEmpty(t, got.IP)
}

func TestALateFailureIsToldFromAFailedRead(t *testing.T) {
	t.Parallel()
	p := fake.New("f")
	p.FailCreate(providers.ErrQuotaExceeded, "no capacity in zone a")
	req := request("a")
	id := create(t, p, req)
	require.Equal(t, id, create(t, p, req), "a repetition returns the ID")
	require.True(t, p.Failed(id))

	_, err := p.Get(t.Context(), id)
	require.True(t, providers.IsCreateFailed(err))
	require.ErrorIs(t, err, providers.ErrQuotaExceeded)
	require.ErrorContains(t, err, "no capacity in zone a")
	listed, err := p.ListByTag(t.Context())
	require.NoError(t, err)
	require.Empty(t, listed)

	req.Attempt++
	require.Equal(t, id, create(t, p, req))
	_, err = p.Get(t.Context(), id)
	require.NoError(t, err, "a new attempt makes it")
	require.False(t, p.Failed(id))
	require.Len(t, p.Requests(), 3)
}

func TestDeleteEndsALateFailure(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.WithSlowDelete())
	p.FailCreate(providers.ErrPermanent, "no such image")
	id := create(t, p, request("a"))
	require.NoError(t, p.Delete(t.Context(), id))
	_, err := p.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrNotFound)
}

func TestForeignInstancesAreNeitherAdoptedNorListed(t *testing.T) {
	t.Parallel()
	p := fake.New("f")
	p.Plant(providers.Instance{ID: fake.ID("a"), UID: "theirs", Installation: "prod", State: providers.StateRunning})
	_, err := p.Create(t.Context(), request("a"))
	require.ErrorIs(t, err, providers.ErrPermanent)
	for _, word := range []string{"theirs", "prod", "uid-a", "test"} {
		require.ErrorContains(t, err, word)
	}
	listed, err := p.ListByTag(t.Context())
	require.NoError(t, err)
	require.Empty(t, listed)
	require.Len(t, p.Instances(), 1)
}

func TestAMarkedInstanceWithoutUIDIsListed(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.WithInstallation("prod"))
	p.Plant(providers.Instance{ID: fake.ID("a"), Installation: "prod", State: providers.StateStopped})
	listed, err := p.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.Empty(t, listed[0].UID)
}

func TestHandlesChangeWhatGetSays(t *testing.T) {
	t.Parallel()
	p := fake.New("f")
	id := create(t, p, request("a"))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p.SetState(id, providers.StateTerminated)
	p.SetReason(id, "preempted")
	p.SetCreatedAt(id, at)
	p.SetDeleting(id, true)
	got, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, providers.Instance{
		ID: id, State: providers.StateTerminated, Reason: "preempted", Deleting: true, CreatedAt: at,
		UID: "uid-a", Installation: "test", Owner: "default/a",
	}, *got)

	p.SetState(id, providers.StateRunning)
	p.SetIP(id, "127.9.9.9")
	got, err = p.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "127.9.9.9", got.IP)
}

func TestAHiddenInstanceIsStillFoundByCreate(t *testing.T) {
	t.Parallel()
	p := fake.New("f")
	id := create(t, p, request("a"))
	p.Hide(id)
	_, err := p.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrNotFound)
	listed, err := p.ListByTag(t.Context())
	require.NoError(t, err)
	require.Empty(t, listed)
	require.Equal(t, id, create(t, p, request("a")))
	require.Len(t, p.Instances(), 1)
	p.Show(id)
	_, err = p.Get(t.Context(), id)
	require.NoError(t, err)
	p.Lose(id)
	require.Empty(t, p.Instances())
}

func TestRequestsDoNotChangeAfterwards(t *testing.T) {
	t.Parallel()
	p := fake.New("f")
	req := request("a")
	req.Labels = map[string]string{"team": "a"}
	create(t, p, req)
	req.Labels["team"] = "b"
	require.Equal(t, "a", p.Requests()[0].Labels["team"])
}

func TestCheckSaysWhenItsContextHasEnded(t *testing.T) {
	t.Parallel()
	p := fake.New("f")
	require.True(t, p.Check(t.Context())[0].Ready)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, providers.ReasonTimeout, p.Check(ended)[0].Reason)
}
