package main

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func troubled(t *testing.T) *faults {
	t.Helper()
	return withFaults(newBackend(), rand.New(rand.NewPCG(1, 1)))
}

func TestTroubleIsTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	a, b := troubled(t), troubled(t)
	for range 1000 {
		require.Equal(t, a.draw(providers.OpGet, "x").name, b.draw(providers.OpGet, "x").name)
	}
	require.Equal(t, a.String(), b.String())
	require.NotEmpty(t, a.String())
}

func TestALieIsToldOnceAboutAnInstance(t *testing.T) {
	t.Parallel()
	f := troubled(t)
	stays, leaves := create(t, f.backend, zones[0], 1), create(t, f.backend, zones[1], 1)
	require.NoError(t, f.backend.Delete(t.Context(), leaves))
	for range 10_000 {
		f.draw(providers.OpGet, stays)
		f.draw(providers.OpGet, leaves)
		f.draw(providers.OpGet, "zone-c/nobody")
		f.draw(providers.OpCreate, ours)
	}
	require.Equal(t, 1, f.counts["get "+falseNotFound], "none about what is being deleted, or is not there")
	require.Equal(t, 1, f.counts["create "+lateFailure])
}

func TestEveryTroubleHappensUntilItIsHealed(t *testing.T) {
	t.Parallel()
	f := troubled(t)
	require.NotEmpty(t, f.missing(), "nothing has happened yet")
	id := create(t, f.backend, zones[0], 1)
	for op := range troubles() {
		for range callsEach * len(troubles()[op]) {
			f.draw(op, id)
		}
	}
	require.Empty(t, f.missing())
	f.heal()
	for range 10_000 {
		require.Empty(t, f.draw(providers.OpCreate, "y").name)
	}
}

func TestALostAnswerIsOfACallThatWorked(t *testing.T) {
	t.Parallel()
	for _, trouble := range troubles()[providers.OpCreate] {
		b := newBackend()
		ctx, cancel := context.WithCancel(t.Context())
		if trouble.name == "slow" {
			trouble.before = func(context.Context) error { return nil }
		}
		if trouble.name == "hang" || trouble.name == "hang after it worked" {
			if trouble.after == nil {
				cancel()
			} else {
				trouble.after = func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }
			}
		}
		_, err := meet(ctx, trouble, providers.OpCreate, func(ctx context.Context) (string, error) {
			return b.Create(ctx, asked(zones[0], 1))
		})
		held, _ := b.record()
		acted := trouble.before == nil || trouble.name == "slow"
		require.Equal(t, acted, len(held) == 1, trouble.name)
		if trouble.name != "slow" && trouble.name != lateFailure {
			require.Error(t, err, trouble.name)
			require.Equal(t, "create", providersOp(t, err), trouble.name)
		}
		cancel()
	}
}

func providersOp(t *testing.T, err error) string {
	t.Helper()
	e := &providers.Error{}
	require.ErrorAs(t, err, &e)
	return e.Op
}
