package providertest

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func listRows() []Row {
	return []Row{
		{
			Name: "ListHoldsWhatWasCreated", Section: "2.4", run: listHoldsWhatWasCreated,
			Breaks: "orphan GC never collects what is not listed",
		},
		{
			Name: "ListHoldsOnlyItsInstallation", Section: "2.4", run: listHoldsOnlyItsInstallation,
			Breaks: "orphan GC deletes the instances of another installation",
		},
		{
			Name: "ListLeavesOutWhatIsNotMarked", Section: "2.4", Needs: "Lab.Plant", run: listLeavesOutWhatIsNotMarked,
			Breaks: "orphan GC deletes an instance that the fleet does not own",
		},
		{
			Name: "ListedIDsAreTaken", Section: "2.4", run: listedIDsAreTaken,
			Breaks: "orphan GC deletes by the ID that it was listed",
		},
		{
			Name: "DeletedLeavesTheList", Section: "2.4", run: deletedLeavesTheList,
			Breaks: "orphan GC deletes the same instance in every round",
		},
		{
			Name: "WithoutUIDIsListed", Section: "2.4", Needs: "Lab.Squat", run: withoutUIDIsListed,
			Breaks: "nobody ever sees what a crash left half marked; with a UID that is made up it is deleted unseen",
		},
		{
			Name: "ListShowsStateAndAddress", Section: "2.4", Needs: "ListsState", run: listShowsStateAndAddress,
			Breaks: "the drift sweep asks for every instance one by one",
		},
		{
			Name: "InventoryAgreesWithTheList", Section: "2.4", Needs: "Inventory", run: inventoryAgrees,
			Breaks: "orphan GC sees something else than the drift sweep",
		},
	}
}

func listHoldsWhatWasCreated(s *scene) {
	for _, req := range s.requests(3) {
		id := s.create(req)
		found := s.onceListed(req.UID)
		require.Equal(s, id, found.ID)
		require.False(s, found.CreatedAt.IsZero())
	}
}

func listHoldsOnlyItsInstallation(s *scene) {
	s.created()
	foreign := s.request()
	foreign.Installation = "elsewhere"
	ctx, cancel := s.bounded()
	defer cancel()
	id, err := s.p.Create(ctx, foreign)
	if err != nil {
		require.ErrorIs(s, err, providers.ErrPermanent, "another installation can only be refused")
	} else {
		s.Cleanup(func() { s.remains(id) })
	}
	for _, found := range s.list() {
		require.Equal(s, s.suite.Installation, found.Installation, "installation of %s", found.ID)
	}
}

// remains removes an instance that no list shows.
func (s *scene) remains(id string) {
	ctx, cancel := s.afterwards()
	defer cancel()
	if err := s.p.Delete(ctx, id); err != nil {
		assert.Fail(s, "the row leaves something behind", "%v", err)
	}
}

func listLeavesOutWhatIsNotMarked(s *scene) {
	req, _ := s.created()
	planted := s.suite.Lab.Plant(s.host, s.p)
	require.NotEmpty(s, planted, "Suite.Lab.Plant returns the IDs")
	s.onceListed(req.UID)
	for _, found := range s.list() {
		require.NotContains(s, planted, found.ID)
	}
}

func listedIDsAreTaken(s *scene) {
	reqs := s.requests(3)
	for _, req := range reqs {
		s.create(req)
	}
	for _, req := range reqs {
		listed := s.onceListed(req.UID)
		require.Equal(s, req.UID, s.get(listed.ID).UID)
		s.delete(listed.ID)
		s.gone(listed.ID, nothing)
	}
}

func deletedLeavesTheList(s *scene) {
	req, id := s.created()
	s.onceListed(req.UID)
	s.delete(id)
	s.gone(id, nothing)
	s.eventually(s.suite.GoneWithin, "the list forgets the instance", func() bool { return len(s.listed(req.UID)) == 0 })
}

func withoutUIDIsListed(s *scene) {
	req := s.request()
	s.suite.Lab.Squat(s.host, s.p, req, providers.MarkUID)
	var found []providers.Instance
	s.eventually(s.suite.RunningWithin, "an instance without a UID is listed", func() bool {
		found = slices.DeleteFunc(s.list(), func(i providers.Instance) bool { return !strings.Contains(i.ID, req.Name) })
		return len(found) > 0
	})
	require.Len(s, found, 1)
	require.Empty(s, found[0].UID, "UID of %s, which has none", found[0].ID)
	require.Equal(s, s.suite.Installation, found[0].Installation, "installation of %s", found[0].ID)
}

func listShowsStateAndAddress(s *scene) {
	req, id := s.created()
	running := s.running(id, nothing)
	var found providers.Instance
	s.eventually(s.suite.RunningWithin, "the list shows the instance as Running", func() bool {
		found = s.onceListed(req.UID)
		return found.State == providers.StateRunning
	})
	require.Equal(s, running.IP, found.IP, "address of %s in the list", id)
}

func inventoryAgrees(s *scene) {
	inventorier, ok := providers.As[providers.Inventorier](s.p)
	require.True(s, ok, "the suite says that there is an inventory")
	req, id := s.created()
	s.onceListed(req.UID)
	ctx, cancel := s.bounded()
	defer cancel()
	inventory, err := inventorier.Inventory(ctx)
	require.NoError(s, err)
	at := slices.IndexFunc(inventory.Instances, func(i providers.Instance) bool { return i.ID == id })
	require.GreaterOrEqual(s, at, 0, "the inventory holds the instance")
	s.hasMarks(req, inventory.Instances[at], "Inventory")
	for _, found := range inventory.Instances {
		require.Equal(s, s.suite.Installation, found.Installation, "installation of %s", found.ID)
	}
}
