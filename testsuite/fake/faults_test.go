package fake_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

func TestBeforeKeepsTheCallFromTheBackend(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	f.Before(providers.OpCreate, fake.FailingWith(providers.ErrPermanent, "no such zone"))
	_, err := f.Create(t.Context(), request("a"))
	want := &providers.Error{}
	require.ErrorAs(t, err, &want)
	require.Equal(t, "f: create mem/a: Permanent: no such zone", want.Error())
	require.Empty(t, f.Instances())
}

func TestAfterLosesOnlyTheAnswer(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	f.After(providers.OpCreate, fake.Once(providers.ErrTransient))
	_, err := f.Create(t.Context(), request("a"))
	require.ErrorIs(t, err, providers.ErrTransient)
	require.Len(t, f.Instances(), 1)
	create(t, f, request("a"))
	require.Equal(t, 2, f.Calls(providers.OpCreate))
}

func TestABrokenProviderFailsEverywhereUntilItIsHealed(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	calls := []struct {
		name string
		call func() error
	}{
		{"create", func() error { _, err := f.Create(t.Context(), request("a")); return err }},
		{"get", func() error { _, err := f.Get(t.Context(), fake.ID("a")); return err }},
		{"list", func() error { _, err := f.ListByTag(t.Context()); return err }},
		{"inventory", func() error { _, err := f.Inventory(t.Context()); return err }},
		{"delete", func() error { return f.Delete(t.Context(), fake.ID("a")) }},
	}
	f.Break(providers.ErrQuotaExceeded)
	for _, c := range calls {
		err := c.call()
		require.ErrorIs(t, err, providers.ErrQuotaExceeded, c.name)
		require.Equal(t, c.name == "create", providers.IsCreateFailed(err), c.name)
	}
	f.Heal()
	for _, c := range calls {
		require.NoError(t, c.call(), c.name)
	}
	require.Equal(t, 4, f.Calls(providers.OpList), "the inventory counts as a list")
}

func TestAHangingCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	f.Before(providers.OpGet, fake.Hanging)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := f.Get(ctx, fake.ID("a")); done <- err }()
	cancel()
	err := <-done
	require.ErrorIs(t, err, providers.ErrTransient)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAHookMayReturnAnErrorThatIsNoClass(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	raw := errors.New("socket hang up")
	f.Before(providers.OpGet, func(context.Context) error { return raw })
	_, err := f.Get(t.Context(), fake.ID("a"))
	require.Equal(t, raw, err)
	require.Equal(t, providers.ErrTransient, providers.ClassOf(err))
}
