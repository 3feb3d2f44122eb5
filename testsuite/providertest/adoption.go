package providertest

import (
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func adoptionRows() []Row {
	return []Row{
		{
			Name: "HalfMarkedIsNeverAdopted", Section: "2.1", Needs: "Lab.Squat", run: halfMarkedIsNeverAdopted,
			applies: when(func(p providers.Profile) bool { return p.GCMark != providers.MarkWindow },
				"what has no marks yet may be the Proxy's own"),
			Breaks: "an instance that somebody else made is taken over, and deleted with the Proxy",
		},
		{
			Name: "InstallationsLeaveEachOtherAlone", Section: "2.4", Needs: "Lab.Neighbour", run: leaveEachOtherAlone,
			Breaks:  "orphan GC of one installation deletes everything of the other",
			Reports: []string{"scrapoxy/scrapoxy#167"},
		},
	}
}

// halfMarkedIsNeverAdopted leaves out one mark at a time: the name alone, or half of
// a mark, is no claim.
func halfMarkedIsNeverAdopted(s *scene) {
	for _, missing := range []string{providers.MarkUID, providers.MarkInstallation, providers.MarkManaged} {
		req := s.request()
		s.suite.Lab.Squat(s.host, s.p, req, missing)
		ctx, cancel := s.bounded()
		_, err := s.p.Create(ctx, req)
		cancel()
		require.ErrorIs(s, err, providers.ErrPermanent, "without %s an instance is nobody's", missing)
		var foreign *providers.ForeignError
		require.ErrorAs(s, err, &foreign, "the reason reaches status only by this type")
		require.Equal(s, providers.Holder{UID: req.UID, Installation: req.Installation}, foreign.Wanted)
		switch missing {
		case providers.MarkUID:
			require.Empty(s, foreign.Found.UID, "the mark that is not there")
		case providers.MarkInstallation:
			require.Empty(s, foreign.Found.Installation, "the mark that is not there")
		}
		require.ErrorContains(s, err, req.UID, "the error names who wants the name")
	}
}

// leaveEachOtherAlone is two whole fleets on one backend, one of which deletes all that
// it lists.
func leaveEachOtherAlone(s *scene) {
	const theirs = "elsewhere"
	neighbour := s.suite.Lab.Neighbour(s.host, s.p, theirs)
	req, id := s.created()
	foreign := s.request()
	foreign.Installation = theirs
	ctx, cancel := s.bounded()
	defer cancel()
	other, err := neighbour.Create(ctx, foreign)
	require.NoError(s, err)
	s.Cleanup(func() { s.remains(other) })
	s.onceListed(req.UID)
	for _, i := range s.list() {
		require.NotEqual(s, other, i.ID, "the instance of another installation is listed")
	}
	var all []providers.Instance
	s.eventually(s.suite.RunningWithin, "the neighbour lists its own", func() bool {
		all, err = neighbour.ListByTag(ctx)
		require.NoError(s, err)
		return len(all) > 0
	})
	for _, i := range all {
		require.NotEqual(s, id, i.ID, "the other installation lists ours")
		require.Equal(s, theirs, i.Installation)
		require.NoError(s, neighbour.Delete(ctx, i.ID))
	}
	require.False(s, s.get(id).Deleting)
}

// isForeign checks the error of a Create that met somebody else's instance: it names
// both, to people and, as a *providers.ForeignError, to the workflow.
func (s *scene) isForeign(err error, found providers.Holder, wanted providers.CreateRequest) {
	s.Helper()
	require.ErrorIs(s, err, providers.ErrPermanent)
	for _, word := range []string{found.UID, found.Installation, wanted.UID, wanted.Installation} {
		require.ErrorContains(s, err, word, "the error names both")
	}
	var foreign *providers.ForeignError
	require.ErrorAs(s, err, &foreign, "the reason reaches status only by this type")
	require.Equal(s, found, foreign.Found, "who holds the name")
	require.Equal(s, providers.Holder{UID: wanted.UID, Installation: wanted.Installation}, foreign.Wanted)
}
