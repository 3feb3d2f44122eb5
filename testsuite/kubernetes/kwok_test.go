//go:build integration && linux

package kubernetes

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kubernetes"
)

// unthrottled lets a test ask as fast as the API server answers.
func unthrottled(cfg *kubernetes.Config) { cfg.QPS, cfg.Burst = 1000, 1000 }

func TestFiveHundredPodsAreListedPageByPage(t *testing.T) {
	c := own(t)
	census := takeCensus(t, c)
	n := newTenant(t, c, unthrottled)
	ids := make([]string, wantKwok)
	atOnce(wantKwok, func(i int) {
		id, err := n.Create(t.Context(), request(i))
		if err != nil {
			t.Error(err)
		}
		ids[i] = id
	})
	require.False(t, t.Failed())
	require.Eventually(t, func() bool {
		list, err := n.ListByTag(t.Context())
		return err == nil && len(list) == wantKwok && !slices.ContainsFunc(list, func(i providers.Instance) bool {
			return i.State != providers.StateRunning || i.IP == ""
		})
	}, soon, tick)
	require.Equal(t, wantKwok, census.births())
	counted.kwok.Add(int64(len(n.pods())))
	further := func(a asked) bool { return strings.Contains(a.RequestURI, "continue=") }
	cached := func(a asked) bool { return strings.Contains(a.RequestURI, "resourceVersion=") }
	require.True(t, slices.ContainsFunc(n.requests(), further), "the listing has more than one page")
	require.False(t, slices.ContainsFunc(n.requests(), cached), "a read was answered from a cache")

	atOnce(wantKwok, func(i int) {
		if err := n.Delete(t.Context(), ids[i]); err != nil {
			t.Error(err)
		}
	})
	require.Eventually(t, func() bool { return census.alive() == 0 }, soon, tick)
	list, err := n.ListByTag(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestTheAPIServerGoesAwayInTheMiddleOfCreatesAndOfDeletes(t *testing.T) {
	const many = 100
	c := own(t)
	census := takeCensus(t, c)
	n := newTenant(t, c, unthrottled)
	ids := make([]string, many)
	outage(t, n, many, func(i int) (err error) {
		ids[i], err = n.Create(t.Context(), request(i))
		return err
	})
	require.Len(t, n.pods(), many)
	for _, id := range ids {
		n.running(id)
	}

	outage(t, n, many, func(i int) error {
		if err := n.Delete(t.Context(), ids[i]); err != nil {
			return err
		}
		_, err := n.Get(t.Context(), ids[i])
		if providers.ClassOf(err) == providers.ErrNotFound {
			return nil
		}
		return err
	})
	require.Eventually(t, func() bool { return census.alive() == 0 }, soon, tick)
	require.Equal(t, many, census.births(), "a create that was repeated made no second Pod")
}

// outage does something many times, by several at once. It kills the API server when a
// fifth is done, and starts it again when calls have failed. What fails is repeated until
// it is done, and may only be Transient.
func outage(t *testing.T, n *tenant, many int, do func(i int) error) {
	t.Helper()
	enough := int64(many / 5)
	var done, failed atomic.Int64
	up := make(chan struct{})
	go func() {
		defer close(up)
		waitFor(t, &done, enough)
		n.KillAPI()
		waitFor(t, &failed, enough)
		if err := n.StartAPI(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	atOnce(many, func(i int) {
		for t.Context().Err() == nil {
			err := do(i)
			if err == nil {
				break
			}
			if providers.ClassOf(err) != providers.ErrTransient {
				t.Errorf("not Transient: %v", err)
				break
			}
			failed.Add(1)
			<-time.After(tick)
		}
		done.Add(1)
	})
	<-up
	require.False(t, t.Failed())
	require.Less(t, enough, failed.Load())
}

// waitFor waits until a count is reached.
func waitFor(t *testing.T, count *atomic.Int64, enough int64) {
	for count.Load() < enough && t.Context().Err() == nil {
		<-time.After(time.Millisecond)
	}
}

func TestWhoMayNotLookSaysNothingIsMissing(t *testing.T) {
	c := own(t)
	n := newTenant(t, c)
	id, err := n.Create(t.Context(), request(1))
	require.NoError(t, err)
	n.running(id)
	n.grant(nil)
	require.Eventually(t, func() bool {
		_, err := n.Get(t.Context(), id)
		require.NotErrorIs(t, err, providers.ErrNotFound)
		return providers.ClassOf(err) == providers.ErrPermanent
	}, soon, tick)
	_, err = n.Create(t.Context(), request(2))
	require.ErrorIs(t, err, providers.ErrPermanent)
	require.ErrorContains(t, err, user)
	require.ErrorIs(t, n.Delete(t.Context(), id), providers.ErrPermanent)
	_, err = n.ListByTag(t.Context())
	require.Error(t, err, "a list that nobody may read is not an empty one")
	require.Len(t, n.pods(), 1)

	n.grant(documentedRules(t))
	require.Eventually(t, func() bool { _, err := n.Get(t.Context(), id); return err == nil }, soon, tick)
	n.gone(id)
}

// Each right of the guide is one that the provider has used, and none was missing.
func TestTheGuideHasExactlyTheRightsThatAreNeeded(t *testing.T) {
	c := own(t)
	n := newTenant(t, c)
	rules := documentedRules(t)
	for i, change := range []func(){
		func() {},
		func() { n.cfg.AllowedClients = []string{"10.129.0.0/16"} }, // the policy is another one now
	} {
		change()
		n.open()
		id, err := n.Create(t.Context(), request(i))
		require.NoError(t, err)
		n.running(id)
		_, err = n.ListByTag(t.Context())
		require.NoError(t, err)
		n.gone(id)
	}
	unused := rights(rules)
	for _, a := range n.requests() {
		require.NotEqual(t, 403, a.ResponseStatus.Code, "%+v", a)
		unused = slices.DeleteFunc(unused, func(r right) bool {
			return r.group == a.ObjectRef.APIGroup && r.resource == a.ObjectRef.Resource && r.verb == a.Verb &&
				(r.name == "" || r.name == a.ObjectRef.Name)
		})
	}
	require.Empty(t, unused, "the guide asks for rights that nobody uses")
	counted.rules.Store(int64(len(rules)))
}
