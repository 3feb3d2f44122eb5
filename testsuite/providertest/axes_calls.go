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

// cancelledCallLeavesOthers has two calls that wait for the backend, and cancels one.
func cancelledCallLeavesOthers(s *scene) {
	_, id := s.created()
	release := sync.OnceFunc(s.suite.Lab.Stall(s.host, s.p))
	defer release()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	cut, other := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.p.Get(ctx, id); cut <- err }()
	go func() { _, err := s.p.Get(s.Context(), id); other <- err }()
	<-time.After(s.suite.Poll) // both wait for the backend, or the row proves less
	cancel()
	s.mustBe(s.prompt(providers.OpGet, cut), providers.OpGet, providers.ErrTransient)
	select {
	case err := <-other:
		require.Fail(s, "another call", "it ends with the one that was cancelled: %v", err)
	case <-time.After(s.suite.Poll):
	}
	release()
	require.NotErrorIs(s, s.prompt(providers.OpGet, other), providers.ErrNotFound, "once the backend answers")
	s.get(id)
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
