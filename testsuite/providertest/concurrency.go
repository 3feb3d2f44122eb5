package providertest

import (
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func concurrencyRows() []Row {
	return []Row{
		{
			Name: "ThreeCreatesMakeOne", Section: "1.2", run: threeCreatesMakeOne,
			Breaks:  "two workers and a retry create for one Proxy; the second instance is never found again",
			Reports: []string{"kubernetes-sigs/cluster-api-provider-aws#5794", "paperclipinc/karpenter-provider-hetzner#53"},
		},
		{
			Name: "OneUIDWinsAName", Section: "2.1", run: oneUIDWinsAName,
			Breaks:  "two Proxies hold one instance, and the first to end takes it from the other",
			Reports: []string{"paperclipinc/karpenter-provider-hetzner#53"},
		},
		{
			Name: "CreateAndDeleteMayOverlap", Section: "1.2", run: createAndDeleteMayOverlap,
			Breaks: "a create that timed out still runs when the workflow deletes; the name is wedged or doubled",
		},
		{
			Name: "ListMayOverlapOthers", Section: "2.4", run: listMayOverlapOthers,
			Breaks: "orphan GC lists at any time; what is half made has no owner and is deleted",
		},
		{
			Name: "GetMayOverlapDeletes", Section: "2.2", run: getMayOverlapDeletes,
			Breaks: "the workflow ends with NotFound while orphan GC deletes; it would end too early, or never",
		},
	}
}

// rounds is how often a row repeats what only goes wrong sometimes.
const rounds = 3

// threeCreatesMakeOne also asks while the instance is there already.
func threeCreatesMakeOne(s *scene) {
	const callers = 3
	req := s.request()
	first := ""
	for range rounds {
		ids, errs := s.createAll(repeat(req, callers))
		for i := range ids {
			require.NoError(s, errs[i])
			if first == "" {
				first = ids[i]
			}
			require.Equal(s, first, ids[i], "one name has one ID")
		}
		require.Equal(s, first, s.onceListed(req.UID).ID)
	}
}

func oneUIDWinsAName(s *scene) {
	reqs := s.requests(concurrency)
	for i := range reqs {
		reqs[i].Name = reqs[0].Name
	}
	ids, errs := s.createAll(reqs)
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Negative(s, winner, "one UID of many gets the name, and not a second one")
			winner = i
		}
	}
	require.GreaterOrEqual(s, winner, 0, "one UID of many gets the name: %v", errors.Join(errs...))
	holder := providers.Holder{UID: reqs[winner].UID, Installation: reqs[winner].Installation}
	for i, err := range errs {
		unmarked := s.profile.GCMark == providers.MarkWindow && errors.Is(err, providers.ErrTransient)
		if i != winner && !unmarked { // whose it is may not be written yet
			s.isForeign(err, holder, reqs[i])
		}
	}
	require.Equal(s, holder.UID, s.get(ids[winner]).UID, "the instance is the winner's")
	s.onceListed(holder.UID)
}

// createAndDeleteMayOverlap lets either side win, and looks at what is left.
func createAndDeleteMayOverlap(s *scene) {
	req, id := s.created()
	ids := map[string]bool{id: true}
	for range rounds {
		for made := range s.createAgainstDelete(req, id) {
			id, ids[made] = made, true
		}
		require.LessOrEqual(s, len(s.listed(req.UID)), 1, "one Proxy has one instance")
	}
	for made := range ids {
		s.delete(made)
		s.gone(made, func(providers.Instance) { s.delete(made) })
	}
	req.Attempt++
	id = s.create(req)
	s.running(id, nothing)
	require.Equal(s, id, s.onceListed(req.UID).ID)
}

// createAgainstDelete makes both calls at once, three times each, and returns the
// IDs of the creates that succeeded.
func (s *scene) createAgainstDelete(req providers.CreateRequest, id string) map[string]bool {
	s.Helper()
	const each = 3
	ctx, cancel := s.bounded()
	defer cancel()
	ids, errs := make([]string, each), make([]error, 2*each)
	var calls sync.WaitGroup
	for i := range each {
		calls.Go(func() { ids[i], errs[i] = s.p.Create(ctx, req) })
		calls.Go(func() { errs[each+i] = s.p.Delete(ctx, id) })
	}
	calls.Wait()
	made := map[string]bool{}
	for i, err := range errs {
		switch {
		case err != nil:
			require.ErrorIs(s, err, providers.ErrTransient, "what lost against the other call may be tried again")
		case i < each:
			made[ids[i]] = true
		}
	}
	return made
}

func listMayOverlapOthers(s *scene) {
	reqs := s.requests(concurrency)
	errs := make(chan error, concurrency*callsOfALife)
	var others sync.WaitGroup
	for _, req := range reqs {
		others.Go(func() { s.life(req, errs) })
	}
	ended := make(chan struct{})
	go func() { defer close(ended); others.Wait() }()
	defer func() { <-ended }()
	for listing := true; listing; {
		select {
		case <-ended:
			listing = false
		case <-time.After(s.suite.Poll):
		}
		s.wellFormed(s.list())
	}
	close(errs)
	for err := range errs {
		require.NoError(s, err)
	}
}

// wellFormed checks that a list has nothing foreign, half marked or twice.
func (s *scene) wellFormed(all []providers.Instance) {
	s.Helper()
	ids, uids := map[string]bool{}, map[string]bool{}
	for _, i := range all {
		require.NotEmpty(s, i.ID)
		require.False(s, ids[i.ID], "%s is listed twice", i.ID)
		require.Equal(s, s.suite.Installation, i.Installation, "installation of %s", i.ID)
		require.False(s, i.UID != "" && uids[i.UID], "UID %s has two instances", i.UID)
		if s.profile.GCMark != providers.MarkWindow {
			require.NotEmpty(s, i.UID, "%s is listed before its marks are there", i.ID)
			require.False(s, i.CreatedAt.IsZero(), "%s is listed without its creation time, and so as very old", i.ID)
		}
		ids[i.ID], uids[i.UID] = true, true
	}
}

func getMayOverlapDeletes(s *scene) {
	const each = 3
	req, id := s.created()
	s.running(id, nothing)
	var calls sync.WaitGroup
	deletes := make([]error, each)
	for i := range each {
		calls.Go(func() { s.readUntilGone(req, id) })
		calls.Go(func() {
			ctx, cancel := s.bounded()
			defer cancel()
			deletes[i] = s.p.Delete(ctx, id)
		})
	}
	calls.Wait()
	for _, err := range deletes {
		require.NoError(s, err, "the workflow and orphan GC delete at the same time")
	}
	s.gone(id, nothing)
}

// readUntilGone reads until NotFound and once more. It runs beside others, so it
// reports and does not end the row.
func (s *scene) readUntilGone(req providers.CreateRequest, id string) {
	ctx, cancel := s.afterwards()
	defer cancel()
	for ctx.Err() == nil {
		found, err := s.p.Get(ctx, id)
		switch {
		case err == nil:
			assert.Equal(s, req.UID, found.UID, "whose instance a read shows while it is deleted")
		case errors.Is(err, providers.ErrNotFound):
			_, err = s.p.Get(ctx, id)
			assert.ErrorIs(s, err, providers.ErrNotFound, "an instance comes back after NotFound")
			return
		case ctx.Err() == nil:
			assert.ErrorIs(s, err, providers.ErrTransient, "while a delete is under way")
		}
		<-time.After(s.suite.Poll)
	}
}
