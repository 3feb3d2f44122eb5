package realserver

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/starter/fleet"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// latecomer is a lab whose provider has a name of its own, since a release is for all
// proxies of a provider, and is not configured until it is told to be.
type latecomer struct {
	*lab
	configured atomic.Bool
}

func newLatecomer(t *testing.T) *latecomer {
	t.Helper()
	l := &latecomer{lab: newLab(t, quick())}
	l.knows = func(provider string) bool { return provider == l.name && l.configured.Load() }
	return l
}

func (l *latecomer) spec() v1.ProxySpec { return v1.ProxySpec{Provider: l.name, Port: 3128} }

// blocked waits until the proxy is latched with a reason.
func (l *latecomer) blocked(reason string) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		return l.get().Status.Phase == v1.PhaseBlocked && l.reason() == reason
	}, soon, tick)
}

// told repeats a release until Visibility shows the proxy.
func (l *latecomer) told(release func(context.Context, string) (fleet.Released, error)) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		r, err := release(l.t.Context(), l.name)
		require.NoError(l.t, err)
		return r == fleet.Released{Found: 1, Told: 1}
	}, soon, tick)
}

// Field report kubermatic/machine-controller#2080, as far as it is about what is
// missing and then there.
func TestAProviderThatAppearsReleasesWhoWaitsForIt(t *testing.T) {
	l := newLatecomer(t)
	l.work()
	l.apply("apply", l.spec())
	l.blocked(v1.ReasonProviderNotConfigured)
	l.configured.Store(true)
	l.told(l.ReleaseUnconfigured)
	l.running()
	require.Equal(t, 1, l.backend.Calls(providers.OpCreate))
	r, err := l.Release(t.Context(), l.name)
	require.NoError(t, err)
	require.LessOrEqual(t, r.Found, 1, "nobody waits any more, or Visibility lags")
	l.deleted()
}

func TestAnotherConfigurationReleasesAPermanentError(t *testing.T) {
	l := newLatecomer(t)
	l.configured.Store(true)
	l.backend.Before(providers.OpCreate, fake.FailingWith(providers.ErrPermanent, "credential refused"))
	l.work()
	l.apply("apply", l.spec())
	l.blocked(v1.ReasonPermanentError)
	l.backend.Heal()
	r, err := l.ReleaseUnconfigured(t.Context(), l.name)
	require.NoError(t, err)
	require.Zero(t, r.Told, "its provider was configured all the time")
	l.told(l.Release)
	l.running()
	l.deleted()
}

func TestADeletionThatWaitsForItsProviderGoesOnWhenItIsThere(t *testing.T) {
	l := newLatecomer(t)
	l.configured.Store(true)
	l.work()
	l.apply("apply", l.spec())
	l.running()
	l.configured.Store(false)
	_, err := l.Delete(t.Context(), "default", l.name, "test", fleet.Request{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		c, _ := l.get().Status.Condition(v1.ConditionDeleting)
		return c.Reason == v1.ReasonProviderNotConfigured
	}, soon, tick)
	require.Len(t, l.backend.Instances(), 1, "it stays as long as nobody can remove it")
	l.configured.Store(true)
	l.told(l.Release)
	l.closed()
}
