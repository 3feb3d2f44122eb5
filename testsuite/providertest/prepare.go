package providertest

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func prepareRows() []Row {
	const needs = "Lab.Unprepare"
	return []Row{
		{
			Name: "UnpreparedCreateMakesNothing", Section: "2.5", Needs: needs, run: unpreparedCreateMakesNothing,
			Breaks: "a create holds its slot for a download, and a proxy that is deleted meanwhile leaves an instance",
		},
		{
			Name: "PreparedCreateIsMade", Section: "2.5", Needs: needs, run: preparedCreateIsMade,
			Breaks: "the workflow prepares and creates in turn for ever",
		},
		{
			Name: "PrepareMakesNoInstance", Section: "2.5", Needs: needs, run: prepareMakesNoInstance,
			Breaks: "the workflow that is deleted during a Prepare looks for no instance, and leaves one",
		},
		{
			Name: "PrepareReturnsWithItsContext", Section: "2.5", Needs: needs, run: prepareReturnsWithItsContext,
			Breaks: "a delete does not end the fetch that nobody wants any more",
		},
	}
}

func (s *scene) preparer() providers.Preparer {
	s.Helper()
	preparer, ok := providers.As[providers.Preparer](s.p)
	require.True(s, ok, "a provider whose creates may lack something prepares")
	return preparer
}

func (s *scene) unprepared() providers.CreateRequest {
	s.Helper()
	restore := s.suite.Lab.Unprepare(s.host, s.p)
	s.Cleanup(restore)
	return s.request()
}

// prepare asks as the workflow does: without user-data, labels and marks.
func (s *scene) prepare(ctx context.Context, req providers.CreateRequest) error {
	s.Helper()
	return s.preparer().Prepare(ctx, providers.CreateRequest{
		Name: req.Name, UID: req.UID, Attempt: req.Attempt, Installation: req.Installation, Owner: req.Owner,
		Placement: req.Placement, Port: req.Port,
	})
}

func unpreparedCreateMakesNothing(s *scene) {
	req := s.unprepared()
	ctx, cancel := s.bounded()
	defer cancel()
	_, err := s.p.Create(ctx, req)
	lacking, ok := errors.AsType[*providers.NotPreparedError](err)
	require.True(s, ok, "the error of a create that lacks something is a *NotPreparedError: %v", err)
	require.NotEmpty(s, lacking.What)
	require.ErrorIs(s, err, providers.ErrTransient)
	require.Empty(s, s.listed(req.UID), "nothing was made")
}

func preparedCreateIsMade(s *scene) {
	req := s.unprepared()
	ctx, cancel := s.bounded()
	defer cancel()
	for range 2 {
		require.NoError(s, s.prepare(ctx, req), "a Prepare may be repeated")
	}
	s.create(req)
}

func prepareMakesNoInstance(s *scene) {
	req := s.unprepared()
	ctx, cancel := s.bounded()
	defer cancel()
	require.NoError(s, s.prepare(ctx, req))
	require.Empty(s, s.listed(req.UID))
}

func prepareReturnsWithItsContext(s *scene) {
	req := s.unprepared()
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	require.Error(s, s.prepare(ctx, req), "a Prepare that was ended has prepared nothing")
	_, err := s.p.Create(s.Context(), req)
	_, still := errors.AsType[*providers.NotPreparedError](err)
	require.True(s, still, "what it needs is not there: %v", err)
}
