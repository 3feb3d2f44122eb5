package providertest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func createRows() []Row {
	return []Row{
		{
			Name: "CreateIsIdempotent", Section: "2.1", run: createIsIdempotent,
			Breaks: "the workflow repeats Create after every crash; a second ID is a leaked instance",
		},
		{
			Name: "ConcurrentCreatesOfOneNameMakeOne", Section: "1.2", run: concurrentCreatesOfOneName,
			Breaks: "an activity that timed out and its retry overlap; two instances for one Proxy",
		},
		{
			Name: "ConcurrentCreatesAreApart", Section: "1.2", run: concurrentCreatesAreApart,
			Breaks:  "proxies are created at the same time; two of them share an instance",
			Reports: []string{"k8s-proxmox/cluster-api-provider-proxmox#94"},
		},
		{
			Name: "CutOffCreateResumes", Section: "4.2", run: cutOffCreateResumes,
			Breaks: "a worker stops while it creates; the next one finds a half-made instance for ever",
		},
		{
			Name: "GetSeesWhatCreateReturned", Section: "2.1", run: getSeesWhatCreateReturned,
			Breaks: "the workflow creates again after NotFound; a lagging read makes a duplicate",
		},
		{
			Name: "RecreateMakesAFreshOne", Section: "2.2", run: recreateMakesAFreshOne,
			Breaks: "a replacement has the same name; one that adopts the dying instance dies with it",
		},
		{
			Name: "CreateNeverSaysNotFound", Section: "5", run: createNeverSaysNotFound,
			Breaks: "whoever reads metrics and logs takes a failed create for a lost instance",
		},
	}
}

func createIsIdempotent(s *scene) {
	req, id := s.created()
	first := s.get(id)
	require.Equal(s, id, s.create(req), "a repeated Create returns the same ID")
	s.running(id, nothing)
	require.Equal(s, id, s.create(req), "also once the instance runs")
	require.True(s, first.CreatedAt.Equal(s.get(id).CreatedAt), "the instance is the same one")
	s.onceListed(req.UID)
}

// onceListed waits until exactly one instance of a UID is listed.
func (s *scene) onceListed(uid string) providers.Instance {
	s.Helper()
	var found []providers.Instance
	s.eventually(s.suite.RunningWithin, "the list shows the instance", func() bool {
		found = s.listed(uid)
		return len(found) > 0
	})
	require.Len(s, found, 1, "one Proxy has one instance")
	return found[0]
}

// concurrency is how many calls a row makes at once: more than the activity slots
// that one provider usually has.
const concurrency = 8

func concurrentCreatesOfOneName(s *scene) {
	req := s.request()
	ids, errs := s.createAll(repeat(req, concurrency))
	for i := range ids {
		require.NoError(s, errs[i])
		require.Equal(s, ids[0], ids[i], "all of them return the one instance")
	}
	s.onceListed(req.UID)
}

func concurrentCreatesAreApart(s *scene) {
	reqs := s.requests(concurrency)
	ids, errs := s.createAll(reqs)
	for i, id := range ids {
		require.NoError(s, errs[i])
		require.Equal(s, reqs[i].UID, s.get(id).UID, "the ID leads to the instance that was asked for")
	}
	for _, req := range reqs {
		s.onceListed(req.UID)
	}
}

// createAll makes all the calls at the same time.
func (s *scene) createAll(reqs []providers.CreateRequest) ([]string, []error) {
	ctx, cancel := s.bounded()
	defer cancel()
	ids, errs := make([]string, len(reqs)), make([]error, len(reqs))
	var calls sync.WaitGroup
	for i, req := range reqs {
		calls.Go(func() { ids[i], errs[i] = s.p.Create(ctx, req) })
	}
	calls.Wait()
	return ids, errs
}

func repeat(req providers.CreateRequest, n int) []providers.CreateRequest {
	out := make([]providers.CreateRequest, n)
	for i := range out {
		out[i] = req
	}
	return out
}

func cutOffCreateResumes(s *scene) {
	for _, after := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		req := s.request()
		ctx, cancel := context.WithTimeout(s.Context(), after)
		_, err := s.p.Create(ctx, req)
		cancel()
		if err != nil {
			require.ErrorIs(s, err, providers.ErrTransient, "a create that was cut off may be tried again")
		}
		id := s.create(req)
		s.running(id, nothing)
		require.Equal(s, id, s.onceListed(req.UID).ID)
	}
}

func getSeesWhatCreateReturned(s *scene) {
	for _, req := range s.requests(concurrency) {
		id := s.create(req)
		found := s.get(id)
		require.Equal(s, id, found.ID)
		require.Equal(s, req.UID, found.UID)
	}
}

func recreateMakesAFreshOne(s *scene) {
	req, id := s.created()
	old := s.get(id)
	s.delete(id)
	s.gone(id, nothing)
	if old.CreatedAt.Nanosecond() == 0 { // the backend's clock may tick once a second
		tick := time.Now().Add(time.Second)
		s.eventually(s.suite.GoneWithin+time.Second, "a second passes", func() bool { return time.Now().After(tick) })
	}
	req.Attempt++
	id = s.create(req)
	fresh := s.get(id)
	require.True(s, fresh.CreatedAt.After(old.CreatedAt), "created %s, the one before %s", fresh.CreatedAt, old.CreatedAt)
	require.False(s, fresh.Deleting, "a new instance is not on its way out")
	s.running(id, nothing)
	s.onceListed(req.UID)
}

func createNeverSaysNotFound(s *scene) {
	unnamed := s.request()
	unnamed.Name = "Not_A/Name"
	held, _ := s.created()
	held.UID += "-other"
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	for _, doomed := range []struct {
		ctx context.Context //nolint:containedctx // the row is about contexts
		req providers.CreateRequest
	}{{s.Context(), unnamed}, {s.Context(), held}, {ended, s.request()}} {
		_, err := s.p.Create(doomed.ctx, doomed.req)
		require.Error(s, err)
		require.NotErrorIs(s, err, providers.ErrNotFound)
	}
}
