package providertest

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func identityRows() []Row {
	return []Row{
		{
			Name: "CreateMarksTheInstance", Section: "2.1", run: createMarksTheInstance,
			Breaks: "orphan GC finds instances by their marks only; one without leaks",
		},
		{
			Name: "LabelsNeverReplaceMarks", Section: "6", run: labelsNeverReplaceMarks,
			Breaks:  "orphan GC takes the instance for somebody else's, or for nobody's",
			Reports: []string{"kubernetes-sigs/cluster-api-provider-aws#4629"},
		},
		{
			Name: "ForeignUIDIsPermanent", Section: "2.1", run: foreignUIDIsPermanent,
			Breaks:  "two Proxies believe that one instance is theirs, and one deletes it",
			Reports: []string{"paperclipinc/karpenter-provider-hetzner#53"},
		},
		{
			Name: "ForeignInstallationIsPermanent", Section: "2.1", run: foreignInstallationIsPermanent,
			Breaks: "two installations on one backend delete each other's instances",
		},
		{
			Name: "IDIsLocationAndName", Section: "6", run: idIsLocationAndName,
			Breaks: "the next part of the ID is taken for the name, or a log line is torn in two",
		},
		{
			Name: "IDIsSelfContained", Section: "2.1", Needs: "Lab.Reopen", run: idIsSelfContained,
			Breaks: "a restarted worker has nothing but the ID; it cannot find the instance",
		},
		{
			Name: "UIDAndCreatedAtAreReadBack", Section: "2.2", run: uidAndCreatedAtAreReadBack,
			Breaks: "orphan GC compares the UID and trusts the age; it deletes what is being made",
		},
		{
			Name: "MarksSurviveARestart", Section: "2.2", Needs: "Lab.Reopen", run: marksSurviveARestart,
			Breaks: "remembered marks are gone after a restart; orphan GC sees an instance without UID",
		},
	}
}

// hasMarks checks the marks that Create was told to write.
func (s *scene) hasMarks(req providers.CreateRequest, found providers.Instance, where string) {
	s.Helper()
	require.Equal(s, req.UID, found.UID, "UID in %s", where)
	require.Equal(s, req.Installation, found.Installation, "installation in %s", where)
	require.Equal(s, req.Owner, found.Owner, "owner in %s", where)
	require.Equal(s, req.SpecMark, found.SpecMark, "spec mark in %s", where)
}

func createMarksTheInstance(s *scene) {
	req, id := s.created()
	if s.profile.GCMark == providers.MarkWindow {
		s.eventually(s.suite.RunningWithin, "the marks are there", func() bool { return s.get(id).UID != "" })
	}
	s.hasMarks(req, s.get(id), "Get")
	s.hasMarks(req, s.onceListed(req.UID), "ListByTag")
}

func labelsNeverReplaceMarks(s *scene) {
	req := s.request()
	req.Labels = map[string]string{
		"team": "crawlers", providers.MarkUID: "stolen", providers.MarkInstallation: "elsewhere",
		providers.MarkManaged: "false", providers.MarkOwner: "nobody", providers.MarkSpec: "{}",
	}
	ctx, cancel := s.bounded()
	defer cancel()
	id, err := s.p.Create(ctx, req)
	if err != nil {
		require.ErrorIs(s, err, providers.ErrPermanent, "such labels can only be refused")
		maps.DeleteFunc(req.Labels, func(key, _ string) bool { return providers.IsMark(key) })
		id = s.create(req)
	}
	s.hasMarks(req, s.get(id), "Get")
	s.hasMarks(req, s.onceListed(req.UID), "ListByTag")
}

func foreignUIDIsPermanent(s *scene) {
	req, id := s.created()
	other := req
	other.UID = req.UID + "-other"
	s.refuses(req, other)
	s.hasMarks(req, s.get(id), "Get, after a foreign Create")
}

func foreignInstallationIsPermanent(s *scene) {
	req, id := s.created()
	other := req
	other.Installation = "elsewhere"
	s.refuses(req, other)
	s.hasMarks(req, s.get(id), "Get, after a foreign Create")
}

// refuses checks that a Create for somebody else than the holder of the name fails.
func (s *scene) refuses(holder, req providers.CreateRequest) {
	s.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	_, err := s.p.Create(ctx, req)
	s.isForeign(err, providers.Holder{UID: holder.UID, Installation: holder.Installation}, req)
}

// maxID is what a memo, a URL and a table can take.
const maxID = 512

func idIsLocationAndName(s *scene) {
	req, id := s.created()
	last := strings.LastIndex(id, "/") // a location may have parts
	require.True(s, last > 0 && last < len(id)-1, "%q is not <location>/<name>", id)
	name := id[last+1:]
	require.LessOrEqual(s, len(id), maxID)
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	require.False(s, strings.ContainsFunc(id, odd), "%q has odd characters", id)
	if s.profile.PrimaryKey == providers.KeyName {
		require.Equal(s, req.Name, name[strings.LastIndex(name, "/")+1:], "the name is the key")
	}
}

func idIsSelfContained(s *scene) {
	req, id := s.created()
	other := s.suite.Lab.Reopen(s.host, s.p)
	found, err := s.look(other, id)
	require.NoError(s, err)
	require.Equal(s, req.UID, found.UID)
	ctx, cancel := s.bounded()
	defer cancel()
	require.NoError(s, other.Delete(ctx, id))
	s.gone(id, nothing)
}

// clockSkew is how far the backend's clock may be from ours.
const clockSkew = time.Minute

func uidAndCreatedAtAreReadBack(s *scene) {
	before := time.Now().Add(-clockSkew)
	req, id := s.created()
	after := time.Now().Add(clockSkew)
	found := s.get(id)
	require.Equal(s, req.UID, found.UID)
	require.True(s, found.CreatedAt.After(before) && found.CreatedAt.Before(after),
		"created at %s, which is not within %s of now", found.CreatedAt, clockSkew)
	require.True(s, found.CreatedAt.Equal(s.running(id, nothing).CreatedAt), "CreatedAt never changes")
	require.True(s, found.CreatedAt.Equal(s.onceListed(req.UID).CreatedAt), "the list says the same")
}

func marksSurviveARestart(s *scene) {
	req, id := s.created()
	before := s.get(id)
	other := s.suite.Lab.Reopen(s.host, s.p)
	found, err := s.look(other, id)
	require.NoError(s, err)
	s.hasMarks(req, *found, "Get of another provider")
	require.True(s, before.CreatedAt.Equal(found.CreatedAt), "created %s, once %s", found.CreatedAt, before.CreatedAt)
	ctx, cancel := s.bounded()
	defer cancel()
	all, err := other.ListByTag(ctx)
	require.NoError(s, err)
	at := slices.IndexFunc(all, func(i providers.Instance) bool { return i.ID == id })
	require.GreaterOrEqual(s, at, 0, "the other provider lists the instance")
	s.hasMarks(req, all[at], "ListByTag of another provider")
}

// addressed checks that an instance has the address it says it has.
func addressed(found providers.Instance) error {
	if found.State != providers.StateRunning {
		return nil
	}
	if _, err := netip.ParseAddr(found.IP); err != nil {
		return errors.New("an instance is Running with the IP " + `"` + found.IP + `"`)
	}
	return nil
}
