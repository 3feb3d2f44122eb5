package fake_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// What a choice means is proven by testsuite/providertest. Here is what it cannot see.

func TestABlockingCreateEndsWithFinishItsContextOrItsCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blocking := fake.With(func(p *providers.Profile) { p.CreateReturn = providers.CreateBlocking })
		p := fake.New("f", fake.WithProvisioning(), blocking)
		done := make(chan error)
		begin := func(ctx context.Context) {
			go func() { _, err := p.Create(ctx, request("a")); done <- err }()
			synctest.Wait()
		}
		cut, cancel := context.WithCancel(t.Context())
		begin(cut)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)

		began := time.Now()
		begin(t.Context())
		require.ErrorIs(t, <-done, providers.ErrTransient, "nobody finishes it")
		require.Equal(t, 30*time.Second, time.Since(began))

		begin(t.Context())
		p.Finish(fake.ID("a"))
		require.NoError(t, <-done)
	})
}

func TestAnAllocatedKeyIsTheLowestFreeOne(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.With(func(p *providers.Profile) { p.PrimaryKey = providers.KeyAllocated }))
	first := create(t, p, request("a"))
	require.Equal(t, "mem/100-a", first)
	require.Equal(t, "mem/101-b", create(t, p, request("b")))
	require.NoError(t, p.Delete(t.Context(), first))
	require.Equal(t, "mem/100-c", create(t, p, request("c")))
}

func TestAPlacementChoosesTheLocation(t *testing.T) {
	t.Parallel()
	p := fake.New("f")
	req := request("a")
	req.Placement.Zone = fake.Elsewhere
	require.Equal(t, "mem-b/a", create(t, p, req))
	heal := p.CutOff(fake.Elsewhere)
	_, err := p.Get(t.Context(), "mem-b/a")
	require.ErrorIs(t, err, providers.ErrTransient)
	require.False(t, p.Check(t.Context())[1].Ready)
	require.True(t, p.Check(t.Context())[0].Ready)
	heal()
	_, err = p.Get(t.Context(), "mem-b/a")
	require.NoError(t, err)
}

func TestAVolumeWithoutInstanceIsALeftoverThatDeleteTakes(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.With(func(p *providers.Profile) { p.SecondaryResources = providers.SecondaryExplicit }))
	left := providers.Leftover{ID: fake.ID("a"), Kind: "volume", UID: "uid-a", Installation: fake.DefaultInstallation}
	p.PlantVolume(left)
	inventory, err := p.Inventory(t.Context())
	require.NoError(t, err)
	require.Equal(t, []providers.Leftover{left}, inventory.Leftovers)
	require.NoError(t, p.Delete(t.Context(), left.ID))
	require.Empty(t, p.Resources("a"))
}

func TestALeftVolumeOfAnotherIsNotTaken(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.With(func(p *providers.Profile) { p.SecondaryResources = providers.SecondaryCascade }))
	p.PlantVolume(providers.Leftover{ID: fake.ID("a"), Kind: "volume", UID: "theirs", Installation: "prod"})
	_, err := p.Create(t.Context(), request("a"))
	var foreign *providers.ForeignError
	require.ErrorAs(t, err, &foreign)
	require.Equal(t, []string{"volume mem/a"}, p.Resources("a"), "it is theirs, and stays")
}

func TestAWrongCredentialIsPermanent(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.WithEnviron("TOKEN", func(string) (string, bool) { return "old", true }))
	p.Accept("new")
	_, err := p.ListByTag(t.Context())
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.NotContains(t, err.Error(), "old")
}

func TestTooMuchCloudInitIsRefusedByItsSize(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.WithMaxCloudInit(3))
	req := request("a")
	req.CloudInit = []byte("s3cret")
	_, err := p.Create(t.Context(), req)
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, "cloudInit: 6 bytes are more than the limit of 3")
	require.NotContains(t, err.Error(), "s3cret")
	req.CloudInit = req.CloudInit[:3]
	create(t, p, req)
}

func TestWhatACreateUnderWayHasMadeIsNoLeftover(t *testing.T) {
	t.Parallel()
	p := fake.New("f", fake.With(func(p *providers.Profile) { p.SecondaryResources = providers.SecondaryExplicit }))
	var seen providers.Inventory
	heal := p.StopAfter("volumes.insert", func() (err error) {
		seen, err = p.Inventory(t.Context())
		require.NoError(t, err)
		panic("the worker dies")
	})
	require.Panics(t, func() { _, _ = p.Create(t.Context(), request("a")) })
	heal()
	require.Empty(t, seen.Leftovers)
	seen, err := p.Inventory(t.Context())
	require.NoError(t, err)
	require.Len(t, seen.Leftovers, 1)
	create(t, p, request("a"))
}
