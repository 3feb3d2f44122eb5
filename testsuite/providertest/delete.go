package providertest

import (
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func deleteRows() []Row {
	return []Row{
		{
			Name: "DeleteEndsInNotFound", Section: "2.3", run: deleteEndsInNotFound,
			Breaks: "the workflow closes when Get says NotFound; it never would",
		},
		{
			Name: "DeleteThatWaitsHasWaited", Section: "4.3", run: deleteThatWaitsHasWaited,
			applies: when(waits, "delete returns early"),
			Breaks:  "whoever read the profile believes that nothing is left",
		},
		{
			Name: "DeleteMayBeRepeated", Section: "2.3", run: deleteMayBeRepeated,
			Breaks: "the workflow and orphan GC race, and a crash repeats the call",
		},
		{
			Name: "DeletesMayOverlap", Section: "2.3", run: deletesMayOverlap,
			Breaks: "the workflow and orphan GC delete one instance at the same time",
		},
		{
			Name: "DeleteOfWhatNeverWasIsNil", Section: "2.3", run: deleteOfWhatNeverWas,
			Breaks: "deletion after a create of unknown outcome never ends",
		},
		{
			Name: "DeleteLeavesNothing", Section: "2.3", Needs: "Lab.Leftovers", run: deleteLeavesNothing,
			Breaks:  "nothing else removes disks, files and addresses; they cost money for ever",
			Reports: []string{"UPC/ravada#39"},
		},
		{
			Name: "DeleteTouchesNoOther", Section: "2.3", run: deleteTouchesNoOther,
			Breaks: "deleting one Proxy takes another one away",
		},
	}
}

func deleteEndsInNotFound(s *scene) {
	_, id := s.created()
	s.running(id, nothing)
	s.delete(id)
	s.gone(id, nothing)
}

func deleteThatWaitsHasWaited(s *scene) {
	_, id := s.created()
	s.running(id, nothing)
	s.delete(id)
	_, err := s.look(s.p, id)
	require.ErrorIs(s, err, providers.ErrNotFound, "the profile says that Delete waits")
}

func waits(p providers.Profile) bool { return p.DeleteReturn == providers.DeleteWaits }

func deleteMayBeRepeated(s *scene) {
	_, id := s.created()
	s.delete(id)
	s.delete(id)
	s.gone(id, func(providers.Instance) { s.delete(id) })
	s.delete(id)
}

func deletesMayOverlap(s *scene) {
	_, id := s.created()
	ctx, cancel := s.bounded()
	defer cancel()
	errs := make([]error, concurrency)
	var calls sync.WaitGroup
	for i := range errs {
		calls.Go(func() { errs[i] = s.p.Delete(ctx, id) })
	}
	calls.Wait()
	for _, err := range errs {
		require.NoError(s, err)
	}
	s.gone(id, nothing)
}

func deleteOfWhatNeverWas(s *scene) {
	for _, id := range s.neverWas() {
		s.delete(id)
	}
}

func deleteLeavesNothing(s *scene) {
	req, id := s.created()
	s.running(id, nothing)
	s.delete(id)
	s.gone(id, nothing)
	require.Empty(s, s.suite.Lab.Leftovers(s.host, s.p, req.UID), "Get says NotFound, but this is left")
}

func deleteTouchesNoOther(s *scene) {
	kept, other := s.created()
	_, id := s.created()
	s.running(other, nothing)
	s.delete(id)
	s.gone(id, nothing)
	found := s.get(other)
	require.Equal(s, providers.StateRunning, found.State)
	require.False(s, found.Deleting)
	s.onceListed(kept.UID)
}
