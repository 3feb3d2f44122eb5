package providertest

import (
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func getRows() []Row {
	return []Row{
		{
			Name: "RunningHasAnAddress", Section: "2.2", run: runningHasAnAddress,
			Breaks: "the address of a Running answer goes straight into status and discovery",
		},
		{
			Name: "BecomesRunning", Section: "4.1", run: becomesRunning,
			Breaks: "the workflow waits for ever",
		},
		{
			Name: "FreshIsNeverStopped", Section: "2.2", run: freshIsNeverStopped,
			Breaks: "the workflow deletes what is Stopped; it would delete each new instance, for ever",
		},
		{
			Name: "GetShowsADyingInstance", Section: "2.2", run: getShowsADyingInstance,
			Breaks: "the workflow believes NotFound and creates while the name is still taken",
		},
		{
			Name: "MissingIsNotFound", Section: "2.2", run: missingIsNotFound,
			Breaks: "deletion ends with NotFound and nothing else; it would never end",
		},
		{
			Name: "UnreachableIsNeverNotFound", Section: "2.2", Needs: "Lab.Break", run: unreachableIsNeverNotFound,
			Breaks: "an outage makes the workflow create a second instance, or forget the first",
		},
		{
			Name: "MalformedIDIsPermanent", Section: "2.2", run: malformedIDIsPermanent,
			Breaks: "Transient would poll for ever; a lenient parser deletes another instance",
		},
	}
}

func runningHasAnAddress(s *scene) {
	req, id := s.created()
	see := func(found providers.Instance) { require.NoError(s, addressed(found)) }
	s.running(id, see)
	see(s.onceListed(req.UID))
}

// twoPolls is what "immediate" promises: Running within a poll or two of 10 s.
const twoPolls = 20 * time.Second

func becomesRunning(s *scene) {
	_, id := s.created()
	began := time.Now()
	s.running(id, nothing)
	if s.profile.Readiness == providers.ReadinessImmediate {
		require.Less(s, time.Since(began), twoPolls, "the profile says that an instance is ready at once")
	}
}

func freshIsNeverStopped(s *scene) {
	fresh := []providers.State{providers.StateProvisioning, providers.StateRunning}
	see := func(found providers.Instance) {
		require.Contains(s, fresh, found.State, "of an instance that has just been created: %s", found.Reason)
		require.False(s, found.Deleting, "nobody has deleted it")
	}
	for _, req := range s.requests(3) {
		s.running(s.create(req), see)
	}
}

func getShowsADyingInstance(s *scene) {
	req, id := s.created()
	s.running(id, nothing)
	s.delete(id)
	s.gone(id, func(found providers.Instance) {
		require.Equal(s, id, found.ID)
		require.Equal(s, req.UID, found.UID)
	})
	require.Empty(s, s.listed(req.UID), "Get says NotFound of an instance that is still listed")
	_, err := s.look(s.p, id)
	require.ErrorIs(s, err, providers.ErrNotFound, "what is gone stays gone")
}

// neverWas returns well-formed IDs of instances that are not there.
func (s *scene) neverWas() []string {
	req, id := s.created()
	s.delete(id)
	s.gone(id, nothing)
	ids := []string{id}
	if s.profile.PrimaryKey == providers.KeyName {
		ids = append(ids, strings.TrimSuffix(id, req.Name)+s.request().Name)
	}
	return ids
}

func missingIsNotFound(s *scene) {
	for _, id := range s.neverWas() {
		_, err := s.look(s.p, id)
		require.ErrorIs(s, err, providers.ErrNotFound)
	}
}

func unreachableIsNeverNotFound(s *scene) {
	req, id := s.created()
	missing := s.neverWas()
	heal := s.suite.Lab.Break(s.host, s.p)
	healed := false
	defer func() {
		if !healed {
			heal()
		}
	}()
	for _, asked := range append(missing, id) {
		for _, c := range s.calls(req, asked) {
			err := c.run(s.Context())
			if err == nil && c.op == providers.OpList && s.profile.ListPartial == providers.ListOmitUnreachable {
				continue
			}
			require.Error(s, err, "%s without a backend", c.op)
			require.NotErrorIs(s, err, providers.ErrNotFound, "%s without a backend", c.op)
		}
	}
	heal()
	healed = true
	require.Equal(s, req.UID, s.get(id).UID, "nothing was lost")
}

func malformedIDIsPermanent(s *scene) {
	req, id := s.created()
	shapes := []string{
		"", "/", "//", "x", "x/", "/x", "../x", "a/../b", "a/b/c/d/e/f",
		"a b/c", "a/b\nc", "a/b\x00", "\xff/\xfe", "%2e%2e/x",
		"https://example.com/x", strings.Repeat("a", 2*maxID) + "/" + strings.Repeat("b", 2*maxID),
		// almost the ID of an instance that is there
		id + "\n", id + " ", id + "/", id + "/x", "/" + id, " " + id, "x/" + id,
		strings.Replace(id, "/", "//", 1), strings.Replace(id, "/", "/../", 1), id + strings.Repeat("a", maxID),
	}
	for _, shape := range shapes {
		for _, c := range s.calls(req, shape) {
			if slices.Contains([]string{providers.OpGet, providers.OpDelete}, c.op) {
				require.ErrorIs(s, c.run(s.Context()), providers.ErrPermanent, "%s of the malformed ID %q", c.op, shape)
			}
		}
	}
	require.False(s, s.get(id).Deleting, "a malformed ID deleted an instance")
}
