package providertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// axesMarkRows are about gc-mark and created-at.
func axesMarkRows() []Row {
	return []Row{
		{
			Name: "UnmarkedIsNotListed", Section: "4.5", Needs: "Lab.HalfWay", run: unmarkedIsNotListed,
			applies: when(func(p providers.Profile) bool { return p.GCMark == providers.MarkWindow }, "create writes the marks"),
			Breaks:  "orphan GC deletes by a mark that is not there; then it may delete anything",
		},
		{
			Name: "HalfMadeIsTakenUp", Section: "2.1", Needs: "Lab.HalfWay", run: halfMadeIsTakenUp,
			Breaks: "a worker dies while it creates; each restart makes another instance, or none ever",
			Reports: []string{
				"kubernetes-sigs/cluster-api-provider-aws#5794", "paperclipinc/karpenter-provider-hetzner#53",
				"vagrant-libvirt/vagrant-libvirt#447",
			},
		},
		{
			Name: "WrittenCreatedAtSurvivesARestart", Section: "4.6", Needs: "Lab.Reopen", run: writtenCreatedAtSurvives,
			applies: when(func(p providers.Profile) bool { return p.CreatedAt == providers.CreatedAtWritten },
				"the backend keeps the time"),
			Breaks: "orphan GC takes an old orphan for a young one after every restart",
		},
	}
}

func unmarkedIsNotListed(s *scene) {
	req := s.request()
	s.halfMade(req)
	for _, found := range s.list() {
		require.NotContains(s, found.ID, req.Name, "an instance without marks is listed")
	}
	id := s.create(req)
	s.hasMarks(req, s.get(id), "Get, after the next Create")
	require.Equal(s, id, s.onceListed(req.UID).ID)
}

func halfMadeIsTakenUp(s *scene) {
	req := s.request()
	s.halfMade(req)
	id := s.create(req)
	s.hasMarks(req, s.get(id), "Get, after the next Create")
	require.Equal(s, id, s.onceListed(req.UID).ID)
	s.running(id, nothing)
	s.delete(id)
	s.gone(id, nothing)
	if s.suite.Lab.Leftovers != nil {
		require.Empty(s, s.left(req.UID), "the half-made create left this")
	}
}

func writtenCreatedAtSurvives(s *scene) {
	req, id := s.created()
	written := s.get(id).CreatedAt
	require.False(s, written.IsZero(), "the profile says that Create writes the time")
	s.p = s.suite.Lab.Reopen(s.host, s.p)
	require.Equal(s, id, s.create(req))
	for where, at := range map[string]time.Time{
		"Get": s.running(id, nothing).CreatedAt, "ListByTag": s.onceListed(req.UID).CreatedAt,
	} {
		require.True(s, written.Equal(at), "%s says %s, and %s before the restart", where, at, written)
	}
}
