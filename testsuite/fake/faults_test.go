package fake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

// Report 2: kubernetes-sigs/cluster-api-provider-aws#2915, a NotFound that is false once.
func TestNextErrorsComeOneByOne(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	id := create(t, f, request("a"))
	f.NextErr(providers.OpGet, providers.ErrNotFound, nil, fake.FailingWith(providers.ErrPermanent, "no")(t.Context()))
	classes := []providers.Class{}
	for range 4 {
		_, err := f.Get(t.Context(), id)
		classes = append(classes, providers.ClassOf(err))
	}
	require.Equal(t, []providers.Class{providers.ErrNotFound, "", providers.ErrPermanent, ""}, classes)
	f.NextErr(providers.OpGet, providers.ErrNotFound)
	f.Heal()
	_, err := f.Get(t.Context(), id)
	require.NoError(t, err)
}

func TestEveryCallIsRecordedWithItsOutcome(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	req := request("a")
	req.Attempt = 3
	id := create(t, f, req)
	f.Before(providers.OpDelete, fake.Panicking("a bug"))
	require.PanicsWithValue(t, "a bug", func() { _ = f.Delete(t.Context(), id) })
	f.NextErr(providers.OpList, providers.ErrTransient)
	_, err := f.ListByTag(t.Context())
	require.Error(t, err)
	require.Equal(t, []fake.Call{
		{Op: providers.OpCreate, ID: id, Attempt: 3},
		{Op: providers.OpDelete, ID: id, Panicked: true},
		{Op: providers.OpList, Class: providers.ErrTransient, Err: err},
	}, f.Recorded())
}

func TestAGateHoldsCallsUntilItOpens(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	gate := fake.NewGate()
	f.Before(providers.OpCreate, gate.Wait)
	done := make(chan error)
	go func() { _, err := f.Create(t.Context(), request("a")); done <- err }()
	<-gate.Arrived()
	require.Empty(t, f.Instances(), "the call waits")
	gate.Open()
	require.NoError(t, <-done)
	create(t, f, request("b"))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, fake.NewGate().Wait(ended), context.Canceled)
}

func TestADelayTakesAsLongAsItsClockSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fake.WithFaults(fake.New("f"))
		f.Before(providers.OpCreate, fake.Delayed(time.Hour, time.After))
		began := time.Now()
		create(t, f, request("a"))
		require.Equal(t, time.Hour, time.Since(began))
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := f.Create(short, request("b"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// Report 7: gardener/machine-controller-manager-provider-aws#54, reads that lag behind.
func TestANewInstanceIsHiddenForSomeLooks(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	f.HideNew(2)
	req := request("a")
	for range 2 { // the second one is as new as the first
		id := create(t, f, req)
		require.Equal(t, id, create(t, f, req), "a repetition hides nothing")
		_, err := f.Get(t.Context(), id)
		require.ErrorIs(t, err, providers.ErrNotFound)
		listed, err := f.ListByTag(t.Context())
		require.NoError(t, err)
		require.Empty(t, listed)
		_, err = f.Get(t.Context(), id)
		require.NoError(t, err)
		require.NoError(t, f.Delete(t.Context(), id))
	}
}

// Report 10: scrapoxy/scrapoxy#46, a list that does not show what was made.
func TestAPartialListSaysNothing(t *testing.T) {
	t.Parallel()
	f := fake.WithFaults(fake.New("f"))
	left, kept := create(t, f, request("a")), create(t, f, request("b"))
	f.PartialList(left)
	listed, err := f.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.Equal(t, kept, listed[0].ID)
	inventory, err := f.Inventory(t.Context())
	require.NoError(t, err)
	require.Len(t, inventory.Instances, 1)
	require.Empty(t, inventory.Omitted)
	f.Heal()
	listed, err = f.ListByTag(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, 2)
}
