package providertest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func contextRows() []Row {
	return []Row{
		{
			Name: "EndedContextReturnsAtOnce", Section: "1.5", run: endedContextReturnsAtOnce,
			Breaks: "a worker that stops waits for its activities, and then abandons them",
		},
		{
			Name: "CancelledCallReturns", Section: "1.5", Needs: "Lab.Stall", run: cancelledCallReturns,
			Breaks: "one hung call keeps an activity slot, and soon all of them",
		},
		{
			Name: "EverythingAtOnce", Section: "1.2", run: everythingAtOnce,
			Breaks: "workflows, orphan GC and health rounds call one provider at the same time",
		},
	}
}

// call is one of the four methods, bound to an instance.
type call struct {
	op  string
	run func(context.Context) error
}

// calls returns the four methods about one instance.
func (s *scene) calls(req providers.CreateRequest, id string) []call {
	return []call{
		{providers.OpCreate, func(ctx context.Context) error { _, err := s.p.Create(ctx, req); return err }},
		{providers.OpGet, func(ctx context.Context) error { _, err := s.p.Get(ctx, id); return err }},
		{providers.OpList, func(ctx context.Context) error { _, err := s.p.ListByTag(ctx); return err }},
		{providers.OpDelete, func(ctx context.Context) error { return s.p.Delete(ctx, id) }},
	}
}

// answer waits for a call, but no longer than a prompt one may take.
func (s *scene) answer(ctx context.Context, c call) error {
	s.Helper()
	answered := make(chan error, 1)
	go func() { answered <- c.run(ctx) }()
	return s.prompt(c.op, answered)
}

func (s *scene) prompt(op string, answered <-chan error) error {
	s.Helper()
	late := time.NewTimer(s.suite.PromptWithin)
	defer late.Stop()
	select {
	case err := <-answered:
		return err
	case <-late.C:
		require.Fail(s, "no answer", "%s does not return within %s of the end of its context", op, s.suite.PromptWithin)
		return nil
	}
}

func endedContextReturnsAtOnce(s *scene) {
	_, id := s.created()
	cancelled, cancel := context.WithCancel(s.Context())
	cancel()
	expired, cancel := context.WithDeadline(s.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, expired} {
		for _, c := range s.calls(s.request(), id) {
			s.mustBe(s.answer(ctx, c), c.op, providers.ErrTransient)
		}
	}
	require.False(s, s.get(id).Deleting, "a call without a context deleted an instance")
}

func cancelledCallReturns(s *scene) {
	_, id := s.created()
	calls := s.calls(s.request(), id)
	release := s.suite.Lab.Stall(s.host, s.p)
	defer release()
	for _, c := range calls {
		ctx, cancel := context.WithCancel(s.Context())
		answered := make(chan error, 1)
		go func() { answered <- c.run(ctx) }()
		select {
		case err := <-answered:
			require.Fail(s, "an answer", "%s answers without its backend: %v", c.op, err)
		case <-time.After(s.suite.Poll):
		}
		cancel()
		s.mustBe(s.prompt(c.op, answered), c.op, providers.ErrTransient)
	}
}

func everythingAtOnce(s *scene) {
	var all sync.WaitGroup
	errs := make(chan error, concurrency*callsOfALife)
	for _, req := range s.requests(concurrency) {
		all.Go(func() { s.life(req, errs) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(s, err)
	}
}

// callsOfALife is how many answers life sends.
const callsOfALife = 3*3 + 2

// life makes, reads, lists and deletes one instance, with other calls in between.
func (s *scene) life(req providers.CreateRequest, errs chan<- error) {
	ctx, cancel := s.bounded()
	defer cancel()
	for range 3 {
		id, err := s.p.Create(ctx, req)
		errs <- err
		_, err = s.p.Get(ctx, id)
		errs <- err
		_, err = s.p.ListByTag(ctx)
		errs <- err
	}
	id, err := s.p.Create(ctx, req)
	errs <- err
	errs <- s.p.Delete(ctx, id)
}
