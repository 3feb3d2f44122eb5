package providertest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// axesCallRows are about credentials, client-kind and timeouts.
func axesCallRows() []Row {
	return []Row{
		{
			Name: "CredentialsAreReadAtTheCall", Section: "4.14", Needs: "Lab.Mount", run: credentialsAreReadAtTheCall,
			applies: when(func(p providers.Profile) bool { return p.Credentials != providers.CredentialsNone },
				"there are no credentials"),
			Breaks:  "a Secret that comes late, or is rotated, needs a restart of every worker",
			Reports: []string{"kubernetes-sigs/cluster-api-provider-vsphere#1275"},
		},
		{
			Name: "RefusedCredentialIsNeverNotFound", Section: "2.2", Needs: "Lab.Refuse", run: refusedIsNeverNotFound,
			applies: when(func(p providers.Profile) bool { return p.Credentials != providers.CredentialsNone },
				"there are no credentials"),
			Breaks: "a credential that is revoked makes doubles of the whole fleet, or ends Proxies that still have instances",
		},
		{
			Name: "CancelledCallLeavesOthersAlone", Section: "4.15", Needs: "Lab.Stall", run: cancelledCallLeavesOthers,
			Breaks: "one activity that times out tears down the connection that all others use",
		},
		{
			Name: "StalledCallIsGivenUp", Section: "4.16", Needs: "Lab.Stall Lab.CallWithin", run: stalledCallIsGivenUp,
			applies: when(func(p providers.Profile) bool { return p.Timeouts == providers.TimeoutsPerCall },
				"calls are bounded by their context only"),
			Breaks: "a backend that takes calls and answers none keeps every slot until the workflow gives up",
		},
	}
}

func credentialsAreReadAtTheCall(s *scene) {
	mount := func(c Credential) { s.suite.Lab.Mount(s.host, s.p, c) }
	mount(CredentialMissing)
	s.refused("no credential", s.whenMissing()...)
	if s.profile.Credentials == providers.CredentialsMountedFiles {
		mount(CredentialUnreadable)
		s.refused("an unreadable credential", providers.ErrPermanent)
	}
	mount(CredentialRotated)
	req, id := s.created()
	if s.profile.Credentials != providers.CredentialsEnvironment {
		mount(CredentialRotated)
		require.Equal(s, id, s.create(req), "with the next credential")
	}
	require.Equal(s, req.UID, s.onceListed(req.UID).UID)
}

// whenMissing returns the classes of a call without a credential. A file or an identity
// may still come; a variable comes with a restart only.
func (s *scene) whenMissing() []providers.Class {
	if s.profile.Credentials == providers.CredentialsEnvironment {
		return []providers.Class{providers.ErrTransient, providers.ErrPermanent}
	}
	return []providers.Class{providers.ErrTransient}
}

// refused checks that calls fail with one of the classes.
func (s *scene) refused(why string, classes ...providers.Class) {
	s.Helper()
	_, created := s.p.Create(s.Context(), s.request())
	_, listed := s.p.ListByTag(s.Context())
	for op, err := range map[string]error{providers.OpCreate: created, providers.OpList: listed} {
		require.Error(s, err, "%s with %s", op, why)
		require.Contains(s, classes, providers.ClassOf(err), "%s with %s: %v", op, why, err)
		s.mustBe(err, op, providers.ClassOf(err))
	}
}

func refusedIsNeverNotFound(s *scene) {
	req, id := s.created()
	restore := s.suite.Lab.Refuse(s.host, s.p)
	defer restore()
	for _, c := range s.calls(req, id) {
		err := c.run(s.Context())
		require.Error(s, err, "%s with a credential that is refused", c.op)
		require.NotErrorIs(s, err, providers.ErrNotFound, "%s with a credential that is refused", c.op)
		require.NotErrorIs(s, err, providers.ErrQuotaExceeded, "%s with a credential that is refused", c.op)
		s.mustBe(err, c.op, providers.ClassOf(err))
	}
	restore()
	require.False(s, s.get(id).Deleting, "nothing was lost")
}

// cancelledCallLeavesOthers has two calls that wait for the backend, and cancels one.
func cancelledCallLeavesOthers(s *scene) {
	err := s.beside(func(ctx context.Context, id string) error { _, err := s.p.Get(ctx, id); return err })
	s.mustBe(err, providers.OpGet, providers.ErrTransient)
}

// beside has a call wait for a backend that is stalled, and calls another off beside it:
// the first one waits on, and is answered once the backend answers. It returns what the
// second one said.
func (s *scene) beside(calledOff func(ctx context.Context, id string) error) error {
	s.Helper()
	_, id := s.created()
	release := sync.OnceFunc(s.suite.Lab.Stall(s.host, s.p))
	defer release()
	waiting, ended := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.p.Get(s.Context(), id); waiting <- err }()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	go func() { ended <- calledOff(ctx, id) }()
	<-time.After(s.suite.Poll) // both wait for the backend, or the row proves less
	cancel()
	said := s.prompt("a call", ended)
	select {
	case err := <-waiting:
		require.Fail(s, "another call", "it ends with the one that was called off: %v", err)
	case <-time.After(s.suite.Poll):
	}
	release()
	require.NotErrorIs(s, s.prompt(providers.OpGet, waiting), providers.ErrNotFound, "once the backend answers")
	s.get(id)
	return said
}

func stalledCallIsGivenUp(s *scene) {
	_, id := s.created()
	calls := s.calls(s.request(), id)
	release := s.suite.Lab.Stall(s.host, s.p)
	defer release()
	for _, c := range calls {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		answered := make(chan error, 1)
		go func() { answered <- c.run(ctx) }()
		late := time.NewTimer(s.suite.Lab.CallWithin)
		defer late.Stop()
		select {
		case err := <-answered:
			s.mustBe(err, c.op, providers.ErrTransient)
		case <-late.C:
			require.Fail(s, "no answer", "%s waits for its backend longer than %s", c.op, s.suite.Lab.CallWithin)
		}
	}
}
