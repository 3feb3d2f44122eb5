package providertest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func secondaryRows() []Row {
	orphans := when(secondary, "there are no secondary resources")
	return []Row{
		{
			Name: "HalfMadeIsCollected", Section: "2.3", Needs: "Lab.HalfWay Lab.Leftovers Inventory", run: halfMadeIsCollected,
			applies: when(func(p providers.Profile) bool { return p.GCMark != providers.MarkWindow || secondary(p) },
				"a crash between create and mark leaves what no list shows"),
			Breaks: "a Proxy is deleted before its create ever succeeded; its disk costs money for ever",
			Reports: []string{
				"gardener/machine-controller-manager#850", "gardener/machine-controller-manager#936",
				"gardener/machine-controller-manager#298",
			},
		},
		{
			Name: "OrphansAreListed", Section: "2.4", Needs: "Lab.Orphan", run: orphansAreListed, applies: orphans,
			Breaks:  "a volume without its instance is in no list, so nothing ever collects it",
			Reports: []string{"gardener/machine-controller-manager#850"},
		},
		{
			Name: "OrphansAreTaken", Section: "2.4", Needs: "Lab.Orphan", run: orphansAreTaken, applies: orphans,
			Breaks: "orphan GC deletes a leftover by the ID that it was listed, in every round",
		},
		{
			Name: "OrphansBlockNoCreate", Section: "2.1", Needs: "Lab.Orphan", run: orphansBlockNoCreate, applies: orphans,
			Breaks:  "a replacement has the same name; the volume of the last one keeps it from being made",
			Reports: []string{"vagrant-libvirt/vagrant-libvirt#447", "UPC/ravada#39"},
		},
	}
}

// left is what the backend still has of a UID.
func (s *scene) left(uid string) []string {
	s.Helper()
	require.NotNil(s, s.suite.Lab.Leftovers, "a suite with secondary resources has Suite.Lab.Leftovers, too")
	return s.suite.Lab.Leftovers(s.host, s.p, uid)
}

// secondary reports whether an instance has resources beside it.
func secondary(p providers.Profile) bool { return p.SecondaryResources != providers.SecondaryNone }

// halfMadeIsCollected deletes what an inventory shows, as orphan GC does, until
// nothing is left.
func halfMadeIsCollected(s *scene) {
	req := s.request()
	s.halfMade(req)
	s.eventually(s.suite.GoneWithin, "what a create that ended half-way made is listed and deleted", func() bool {
		for _, id := range s.inventoried(req.UID) {
			s.delete(id)
			s.gone(id, nothing)
		}
		return len(s.left(req.UID)) == 0
	})
	require.Empty(s, s.listed(req.UID))
}

// inventoried returns the IDs of what an inventory shows of a UID.
func (s *scene) inventoried(uid string) (ids []string) {
	s.Helper()
	inventory := s.inventory()
	for _, i := range inventory.Instances {
		if i.UID == uid {
			ids = append(ids, i.ID)
		}
	}
	for _, left := range inventory.Leftovers {
		if left.UID == uid {
			require.NotEmpty(s, left.Kind, "kind of the leftover %s", left.ID)
			require.Equal(s, s.suite.Installation, left.Installation, "installation of the leftover %s", left.ID)
			ids = append(ids, left.ID)
		}
	}
	return ids
}

func (s *scene) inventory() providers.Inventory {
	s.Helper()
	inventorier, ok := providers.As[providers.Inventorier](s.p)
	require.True(s, ok, "a provider with secondary resources lists what is left of them")
	ctx, cancel := s.bounded()
	defer cancel()
	inventory, err := inventorier.Inventory(ctx)
	require.NoError(s, err)
	return inventory
}

// orphaned puts a secondary resource without an instance at the backend and returns
// how it is listed.
func (s *scene) orphaned() (providers.CreateRequest, providers.Leftover) {
	s.Helper()
	req := s.request()
	known := s.inventory().Leftovers
	s.suite.Lab.Orphan(s.host, s.p, req)
	require.NotEmpty(s, s.left(req.UID), "Suite.Lab.Orphan leaves something that Suite.Lab.Leftovers sees")
	var found []providers.Leftover
	s.eventually(s.suite.RunningWithin, "the inventory lists the orphan", func() bool {
		found = slices.DeleteFunc(s.inventory().Leftovers, func(l providers.Leftover) bool {
			return slices.Contains(known, l) || l.UID != "" && l.UID != req.UID
		})
		return len(found) > 0
	})
	return req, found[0]
}

func orphansAreListed(s *scene) {
	req, found := s.orphaned()
	require.NotEmpty(s, found.ID)
	require.NotEmpty(s, found.Kind, "kind of %s", found.ID)
	require.Equal(s, s.suite.Installation, found.Installation, "installation of %s", found.ID)
	require.Empty(s, s.listed(req.UID), "a leftover is no instance")
	id := s.create(s.request())
	for _, l := range s.inventory().Leftovers {
		require.NotEqual(s, id, l.ID, "the resources of an instance that is there are no leftovers")
	}
	s.delete(found.ID)
}

func orphansAreTaken(s *scene) {
	req, found := s.orphaned()
	kept, id := s.created()
	s.delete(found.ID)
	s.eventually(s.suite.GoneWithin, "a leftover that was deleted is gone", func() bool {
		return len(s.left(req.UID)) == 0
	})
	s.delete(found.ID)
	for _, l := range s.inventory().Leftovers {
		require.NotEqual(s, found.ID, l.ID, "a leftover that is gone is listed")
	}
	require.Equal(s, kept.UID, s.get(id).UID, "deleting a leftover touches no instance")
}

// orphansBlockNoCreate uses the name that left something behind.
func orphansBlockNoCreate(s *scene) {
	req, _ := s.orphaned()
	id := s.create(req)
	s.running(id, nothing)
	require.Equal(s, req.UID, s.onceListed(req.UID).UID)
	s.delete(id)
	s.gone(id, nothing)
	require.Empty(s, s.left(req.UID), "the volume that was there before")
}
