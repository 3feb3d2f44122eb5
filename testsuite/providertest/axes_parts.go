package providertest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// axesPartRows are about list-partial, quota and not-found.
func axesPartRows() []Row {
	return []Row{
		{
			Name: "PartIsMissedWhole", Section: "4.7", Needs: "Lab.Part", run: partIsMissedWhole,
			applies: when(func(p providers.Profile) bool { return p.ListPartial == providers.ListFailWhole },
				"the list leaves out what it cannot reach"),
			Breaks: "the drift sweep takes everything in the missing part for lost",
		},
		{
			Name: "PartIsLeftOutByName", Section: "4.7", Needs: "Lab.Part Inventory", run: partIsLeftOutByName,
			applies: when(func(p providers.Profile) bool { return p.ListPartial == providers.ListOmitUnreachable },
				"one missing part fails the list"),
			Breaks: "one host that is down keeps the orphans of all others, or hides that it is down",
		},
		{
			Name: "LeftOutIsLogged", Section: "4.7", Needs: "Lab.Part", run: leftOutIsLogged,
			applies: when(func(p providers.Profile) bool {
				return p.ListPartial == providers.ListOmitUnreachable && p.Logging != providers.LoggingNone
			}, "one missing part fails the list, or nothing is logged"),
			Breaks: "whoever wonders why orphans stay sees a list that succeeded",
		},
		{
			Name: "CutOffPartIsNeverNotFound", Section: "4.9", Needs: "Lab.Part", run: cutOffPartIsNeverNotFound,
			Breaks: "an outage of one part makes doubles of everything in it",
		},
		{
			Name: "OnlyTheInstanceCountsAsMissing", Section: "4.9", Needs: "Lab.Confuse", run: onlyTheInstanceIsMissing,
			Breaks: "a missing route makes the workflow create a second instance, or forget the first",
		},
		{
			Name: "NoCapacityHasItsClass", Section: "4.8", Needs: "Lab.Exhaust", run: noCapacityHasItsClass,
			Breaks: "quota is asked for again and again, or its end is never noticed",
			Reports: []string{
				"gardener/machine-controller-manager#977", "gardener/machine-controller-manager#181",
				"kubermatic/machine-controller#2080",
			},
		},
	}
}

// parted makes one instance in the part that can be cut off and one elsewhere.
func (s *scene) parted() (in, out string) {
	s.Helper()
	req := s.request()
	s.suite.Lab.Part.Place(&req)
	in = s.create(req)
	_, out = s.created()
	return in, out
}

func leftOutIsLogged(s *scene) {
	s.parted()
	heal := s.cut()
	defer heal()
	w := new(watch)
	_, err := s.p.ListByTag(providers.WithLogger(s.Context(), w.logger()))
	require.NoError(s, err)
	require.Contains(s, w.said(), s.suite.Lab.Part.Name, "the log names what the list left out")
}

func (s *scene) cut() (heal func()) { return s.suite.Lab.Part.Cut(s.host, s.p) }

// listedIDs returns the IDs of the row's own instances in a list.
func (s *scene) listedIDs(all []providers.Instance) (ids []string) {
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	return ids
}

func partIsMissedWhole(s *scene) {
	in, out := s.parted()
	heal := s.cut()
	defer heal()
	_, err := s.p.ListByTag(s.Context())
	s.mustBe(err, providers.OpList, providers.ErrTransient)
	heal()
	require.Subset(s, s.listedIDs(s.list()), []string{in, out}, "nothing was lost")
}

func partIsLeftOutByName(s *scene) {
	in, out := s.parted()
	heal := s.cut()
	defer heal()
	ids := s.listedIDs(s.list())
	require.Contains(s, ids, out, "what can be reached is listed")
	require.NotContains(s, ids, in)
	inventory := s.inventory()
	require.Contains(s, inventory.Omitted, s.suite.Lab.Part.Name, "the inventory names what it left out")
	require.NotContains(s, s.listedIDs(inventory.Instances), in)
	heal()
	require.Subset(s, s.listedIDs(s.list()), []string{in, out}, "nothing was lost")
	require.NotContains(s, s.inventory().Omitted, s.suite.Lab.Part.Name)
}

func cutOffPartIsNeverNotFound(s *scene) {
	in, out := s.parted()
	req := s.request()
	s.suite.Lab.Part.Place(&req)
	lost := s.create(req)
	s.delete(lost)
	s.gone(lost, nothing)
	heal := s.cut()
	defer heal()
	for _, id := range []string{in, lost} {
		_, err := s.look(s.p, id)
		s.mustBe(err, providers.OpGet, providers.ErrTransient)
	}
	if _, err := s.look(s.p, out); err != nil {
		s.mustBe(err, providers.OpGet, providers.ErrTransient)
	}
	heal()
	require.Equal(s, in, s.get(in).ID, "nothing was lost")
}

func onlyTheInstanceIsMissing(s *scene) {
	req, id := s.created()
	restore := s.suite.Lab.Confuse(s.host, s.p)
	defer restore()
	for _, c := range s.calls(req, id) {
		err := c.run(s.Context())
		require.Error(s, err, "%s while something else is missing", c.op)
		require.NotErrorIs(s, err, providers.ErrNotFound, "%s while something else is missing", c.op)
	}
	restore()
	require.False(s, s.get(id).Deleting, "nothing was lost")
}

// timesFull is how often a create meets a full backend.
const timesFull = 3

func noCapacityHasItsClass(s *scene) {
	restore := s.suite.Lab.Exhaust(s.host, s.p)
	defer restore()
	class := providers.ErrTransient
	if s.profile.Quota == providers.QuotaDetected {
		class = providers.ErrQuotaExceeded
	}
	req := s.request()
	for range timesFull {
		s.mustBe(s.fails(req), providers.OpCreate, class)
		if s.suite.Lab.Leftovers != nil {
			require.Empty(s, s.suite.Lab.Leftovers(s.host, s.p, req.UID), "a create without capacity leaves this")
		}
		req.Attempt++
	}
	if s.profile.Quota == providers.QuotaAbsent && s.suite.Checker {
		s.tellsCapacity(s.Context())
	}
	restore()
	s.running(s.create(req), nothing)
}

// fails returns why a create failed, at once or later; then it deletes it.
func (s *scene) fails(req providers.CreateRequest) error {
	s.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	id, err := s.p.Create(ctx, req)
	if err != nil {
		return err
	}
	s.eventually(s.suite.RunningWithin, "the create fails", func() bool {
		_, err = s.look(s.p, id)
		return err != nil
	})
	s.delete(id)
	s.gone(id, nothing)
	return err
}

// tellsCapacity checks that a provider that cannot tell quota says how full it is.
func (s *scene) tellsCapacity(ctx context.Context) {
	s.Helper()
	for _, status := range s.checker().Check(ctx) {
		if len(status.Details) > 0 {
			return
		}
	}
	require.Fail(s, "no capacity", "the check has no details, and no error tells that the backend is full")
}
