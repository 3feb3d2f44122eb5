package providertest

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// axesCreateRows are about create-return and primary-key.
func axesCreateRows() []Row {
	allocated := when(func(p providers.Profile) bool { return p.PrimaryKey == providers.KeyAllocated },
		"the name is the key")
	return []Row{
		{
			Name: "SubmitReturnsBeforeRunning", Section: "4.2", run: submitReturnsBeforeRunning,
			applies: when(submits, "create waits, or an instance is ready at once"),
			Breaks:  "each create holds an activity slot for as long as a machine boots",
		},
		{
			Name: "AllocatedIDsAreDistinct", Section: "4.10", run: allocatedIDsAreDistinct, applies: allocated,
			Breaks:  "two Proxies get one machine, and the first deletion takes it from the other",
			Reports: []string{"k8s-proxmox/cluster-api-provider-proxmox#94"},
		},
		{
			Name: "AllocatedIDHoldsTheName", Section: "4.10", run: allocatedIDHoldsTheName, applies: allocated,
			Breaks: "whoever reads an ID at the backend cannot tell whose it is",
		},
		{
			Name: "ReusedKeyIsAnotherInstance", Section: "4.10", run: reusedKeyIsAnotherInstance, applies: allocated,
			Breaks: "a late delete of one Proxy takes the machine that got its number since",
		},
		{
			Name: "DyingIsNotAdopted", Section: "4.3", run: dyingIsNotAdopted,
			applies: when(func(p providers.Profile) bool { return !waits(p) }, "delete waits"),
			Breaks:  "a replacement is the instance that is on its way out",
			Reports: []string{"scrapoxy/scrapoxy#225"},
		},
		{
			Name: "LaggingReadIsWaitedFor", Section: "2.1", Needs: "Lab.Lag", run: laggingReadIsWaitedFor,
			Breaks: "the workflow believes NotFound twice in a row, and creates a double",
			Reports: []string{
				"gardener/machine-controller-manager-provider-aws#54", "kubermatic/machine-controller#1704",
			},
		},
	}
}

// submits reports whether the profile promises a Create that returns before the
// instance runs.
func submits(p providers.Profile) bool {
	started := p.ProvisioningState == providers.ProvisioningCreateBlocks && p.IPSource == providers.IPAssignedAtCreate
	return p.CreateReturn == providers.CreateSubmit && p.Readiness == providers.ReadinessProvisioningWindow && !started
}

func submitReturnsBeforeRunning(s *scene) {
	_, id := s.created()
	require.Equal(s, providers.StateProvisioning, s.get(id).State, "the profile says that Create only submits")
	s.running(id, nothing)
}

// many is how many creates ask for a key at once.
const many = 20

func allocatedIDsAreDistinct(s *scene) {
	reqs := s.requests(many)
	ids, errs := s.createAll(reqs)
	distinct := map[string]bool{}
	for i, id := range ids {
		require.NoError(s, errs[i])
		distinct[id] = true
		require.Equal(s, reqs[i].UID, s.get(id).UID, "the ID leads to the instance that was asked for")
	}
	require.Len(s, distinct, many, "every instance has an ID of its own")
}

func allocatedIDHoldsTheName(s *scene) {
	req, id := s.created()
	location, key, _ := strings.Cut(id, "/")
	require.Contains(s, key, req.Name, "the ID %s of %s holds the name", id, location)
	require.NotEqual(s, req.Name, key, "the profile says that the backend allocates a key")
}

func reusedKeyIsAnotherInstance(s *scene) {
	_, old := s.created()
	s.running(old, nothing)
	s.delete(old)
	s.gone(old, nothing)
	req, id := s.created()
	require.NotEqual(s, old, id, "another instance has another ID")
	_, err := s.look(s.p, old)
	require.ErrorIs(s, err, providers.ErrNotFound, "of an ID whose key may have been given away")
	s.delete(old)
	found := s.get(id)
	require.Equal(s, req.UID, found.UID)
	require.False(s, found.Deleting, "the delete of an old ID takes the instance that has its key now")
}

func dyingIsNotAdopted(s *scene) {
	req, id := s.created()
	s.running(id, nothing)
	s.delete(id)
	req.Attempt++
	ctx, cancel := s.bounded()
	defer cancel()
	again, err := s.p.Create(ctx, req)
	if err != nil {
		s.mustBe(err, providers.OpCreate, providers.ErrTransient)
		s.gone(id, nothing)
		again = s.create(req)
	}
	s.running(again, func(found providers.Instance) {
		require.False(s, found.Deleting, "Create returned the instance that is being deleted")
	})
}

func laggingReadIsWaitedFor(s *scene) {
	restore := s.suite.Lab.Lag(s.host, s.p)
	defer restore()
	req, id := s.created()
	require.Equal(s, req.UID, s.get(id).UID, "Get, right after Create")
	require.Equal(s, id, s.create(req))
	s.onceListed(req.UID)
}

// halfMade is a Create that ends half-way.
func (s *scene) halfMade(req providers.CreateRequest) {
	s.Helper()
	heal := s.suite.Lab.HalfWay(s.host, s.p)
	defer heal()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	require.False(s, s.survives(ctx, req), "Suite.Lab.HalfWay lets Create succeed")
}

// survives reports whether a Create succeeds, and takes a panic for a dead worker.
func (s *scene) survives(ctx context.Context, req providers.CreateRequest) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	_, err := s.p.Create(ctx, req)
	require.NotErrorIs(s, err, providers.ErrNotFound)
	return err == nil
}
