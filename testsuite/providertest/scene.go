package providertest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// scene is one row's provider and what the row does with it. It fails like the test
// that it runs in.
type scene struct {
	T
	suite   Suite
	p       providers.Provider
	profile providers.Profile
	host    *testing.T // for the suite's hooks
	uids    []string   // of this row's instances
}

// callWithin ends a call that would hang the suite; a create that blocks may take
// five minutes.
const callWithin = 6 * time.Minute

func newScene(t T, host *testing.T, suite Suite) *scene {
	t.Helper()
	s := &scene{T: t, suite: suite.withDefaults(), host: host, p: suite.New(host)}
	require.NotEmpty(t, suite.Installation, "Suite.Installation is required")
	s.profile = profileOf(t, s.p)
	t.Cleanup(s.cleanUp)
	return s
}

func profileOf(t T, p providers.Provider) providers.Profile {
	t.Helper()
	profiler, ok := providers.As[providers.Profiler](p)
	require.True(t, ok, "a provider under test must be a providers.Profiler")
	return profiler.Profile()
}

// request returns a request for an instance that no other row, run or user has.
func (s *scene) request() providers.CreateRequest {
	uid := "providertest-" + rand.Text()
	s.uids = append(s.uids, uid)
	req := providers.CreateRequest{
		Name: providers.NameFromUID(uid), UID: uid, Attempt: 1, Installation: s.suite.Installation,
		Owner:    providers.Owner("providertest", "proxy-of-a-row"),
		SpecMark: `{"port":3128,"specHash":"v1-providertest"}`,
		Port:     3128,
	}
	if s.suite.Request != nil {
		s.suite.Request(s.host, &req)
	}
	return req
}

// requests returns n of them.
func (s *scene) requests(n int) []providers.CreateRequest {
	out := make([]providers.CreateRequest, n)
	for i := range out {
		out[i] = s.request()
	}
	return out
}

// bounded returns a context that no call outlives by much.
func (s *scene) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.Context(), callWithin)
}

func (s *scene) create(req providers.CreateRequest) string {
	s.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	id, err := s.p.Create(ctx, req)
	require.NoError(s, err)
	return id
}

// created makes a new instance and returns its request, too.
func (s *scene) created() (providers.CreateRequest, string) {
	s.Helper()
	req := s.request()
	return req, s.create(req)
}

// look is a Get that may fail.
func (s *scene) look(p providers.Provider, id string) (*providers.Instance, error) {
	ctx, cancel := s.bounded()
	defer cancel()
	return p.Get(ctx, id)
}

func (s *scene) get(id string) providers.Instance {
	s.Helper()
	found, err := s.look(s.p, id)
	require.NoError(s, err)
	require.NotNil(s, found, "Get returned neither an instance nor an error")
	return *found
}

func (s *scene) delete(id string) {
	s.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	require.NoError(s, s.p.Delete(ctx, id))
}

func (s *scene) list() []providers.Instance {
	s.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	all, err := s.p.ListByTag(ctx)
	require.NoError(s, err)
	return all
}

// listed returns the entries of the list that are about a UID.
func (s *scene) listed(uid string) []providers.Instance {
	s.Helper()
	return slices.DeleteFunc(s.list(), func(i providers.Instance) bool { return i.UID != uid })
}

// eventually waits until done says so, or fails.
func (s *scene) eventually(within time.Duration, what string, done func() bool) {
	s.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	poll := time.NewTicker(s.suite.Poll)
	defer poll.Stop()
	for !done() {
		select {
		case <-poll.C:
		case <-deadline.C:
			require.Fail(s, "too late", "within %s: %s", within, what)
		}
	}
}

// running waits until the instance runs, calling see with every answer before.
func (s *scene) running(id string, see func(providers.Instance)) providers.Instance {
	s.Helper()
	var last providers.Instance
	s.eventually(s.suite.RunningWithin, "the instance runs", func() bool {
		last = s.get(id)
		see(last)
		return last.State == providers.StateRunning
	})
	return last
}

// gone waits until Get says NotFound, calling see with every instance before. While
// a delete is under way a read may fail with Transient, but in no other way.
func (s *scene) gone(id string, see func(providers.Instance)) {
	s.Helper()
	s.eventually(s.suite.GoneWithin, "Get says NotFound", func() bool {
		found, err := s.look(s.p, id)
		switch {
		case err == nil:
			see(*found)
		case !errors.Is(err, providers.ErrNotFound):
			require.ErrorIs(s, err, providers.ErrTransient, "while a delete is under way")
		}
		return errors.Is(err, providers.ErrNotFound)
	})
}

// nothing is a see that sees nothing.
func nothing(providers.Instance) {}

// cleanUp removes every instance of the row, found by its UID. It deletes again and
// again, as the callers do.
func (s *scene) cleanUp() {
	ctx, cancel := s.afterwards()
	defer cancel()
	poll := time.NewTicker(s.suite.Poll)
	defer poll.Stop()
	for left := s.remove(ctx); left != nil; left = s.remove(ctx) {
		select {
		case <-poll.C:
		case <-ctx.Done():
			assert.Fail(s, "the row leaves something behind", "%v", left)
			return
		}
	}
}

// afterwards returns a context for cleaning up: the test's own has ended by then.
func (s *scene) afterwards() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(s.Context()), s.suite.GoneWithin)
}

// remove deletes what is listed of the row's instances; nil when nothing is.
func (s *scene) remove(ctx context.Context) error {
	all, err := s.p.ListByTag(ctx)
	if err != nil {
		return err
	}
	var left error
	for _, i := range all {
		if slices.Contains(s.uids, i.UID) {
			left = errors.Join(errors.New("instance "+i.ID), s.p.Delete(ctx, i.ID))
			_, _ = s.p.Get(ctx, i.ID) // a backend may only move on when it is asked
		}
	}
	return left
}
