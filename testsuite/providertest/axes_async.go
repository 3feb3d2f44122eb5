package providertest

import (
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// axesAsyncRows are about async-ops.
func axesAsyncRows() []Row {
	return []Row{
		{
			Name: "LateFailureIsReported", Section: "4.12", Needs: "Lab.FailLate Lab.Reopen", run: lateFailureIsReported,
			applies: when(func(p providers.Profile) bool {
				return p.AsyncOps == providers.AsyncTaskHandle && p.CreateReturn == providers.CreateSubmit
			}, "there is no task that can fail after Create has returned"),
			Breaks: "the reason never reaches the user, or NotFound starts an endless loop of creates",
		},
		{
			Name: "LockedIsNeitherGoneNorPermanent", Section: "4.12", Needs: "Lab.Lock", run: lockedIsNeitherGoneNorPermanent,
			applies: when(func(p providers.Profile) bool { return p.AsyncOps == providers.AsyncBackendLock },
				"the backend locks nothing"),
			Breaks: "the workflow creates a double while a task runs, or blocks until somebody edits the Proxy",
		},
	}
}

func lateFailureIsReported(s *scene) {
	for _, class := range providers.Classes() {
		if class == providers.ErrNotFound || class == providers.ErrQuotaExceeded && s.profile.Quota == providers.QuotaAbsent {
			continue
		}
		s.suite.Lab.FailLate(s.host, s.p, class)
		req, id := s.created()
		s.failedLate(s.p, id, class)
		require.Equal(s, id, s.create(req), "a repetition of the same attempt")
		s.failedLate(s.p, id, class)
		s.failedLate(s.suite.Lab.Reopen(s.host, s.p), id, class)
		req.Attempt++
		s.running(s.create(req), nothing)
	}
}

// failedLate waits until Get tells that the create failed.
func (s *scene) failedLate(p providers.Provider, id string, class providers.Class) {
	s.Helper()
	var err error
	s.eventually(s.suite.RunningWithin, "the failure is reported", func() bool {
		_, err = s.look(p, id)
		return err != nil
	})
	s.mustBe(err, providers.OpCreate, class)
	require.True(s, providers.IsCreateFailed(err))
}

func lockedIsNeitherGoneNorPermanent(s *scene) {
	req, id := s.created()
	last := s.running(id, nothing)
	unlock := s.suite.Lab.Lock(s.host, s.p, id)
	defer unlock()
	found, err := s.look(s.p, id)
	if err != nil {
		s.mustBe(err, providers.OpGet, providers.ErrTransient)
	} else {
		require.Equal(s, last.State, found.State, "Get of a locked instance is its last state")
	}
	s.mustBe(s.p.Delete(s.Context(), id), providers.OpDelete, providers.ErrTransient)
	unlock()
	require.Equal(s, req.UID, s.get(id).UID, "the instance is still there")
	s.delete(id)
	s.gone(id, nothing)
}
