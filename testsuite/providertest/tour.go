package providertest

import (
	"context"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// see is told what each call of a tour answered.
type see func(op string, answer any, err error)

// tour makes every call that there is about a request, those that succeed and those
// that are refused or called off, and returns the ID of the instance.
func (s *scene) tour(ctx context.Context, req providers.CreateRequest, see see) string {
	s.Helper()
	id, err := s.p.Create(ctx, req)
	see(providers.OpCreate, id, err)
	if err != nil {
		return id
	}
	held := req
	held.UID += "-other"
	s.everyCall(ctx, held, "not an ID", see) // before the name is free
	s.everyCall(ctx, req, id, see)
	if checker, ok := providers.As[providers.Checker](s.p); ok {
		see("check", checker.Check(ctx), nil)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	s.everyCall(ended, req, id, see)
	return id
}

// everyCall makes the calls about one instance, with the inventory; deletes come last.
func (s *scene) everyCall(ctx context.Context, req providers.CreateRequest, id string, see see) {
	made, err := s.p.Create(ctx, req)
	see(providers.OpCreate, made, err)
	found, err := s.p.Get(ctx, id)
	see(providers.OpGet, shown(found), err)
	all, err := s.p.ListByTag(ctx)
	see(providers.OpList, all, err)
	if inventorier, ok := providers.As[providers.Inventorier](s.p); ok {
		inventory, err := inventorier.Inventory(ctx)
		see(providers.OpList, inventory, err)
	}
	see(providers.OpDelete, nil, s.p.Delete(ctx, id))
}

// shown keeps an instance from being shown as an address.
func shown(found *providers.Instance) any {
	if found == nil {
		return nil
	}
	return *found
}

// stalledCalls makes every call without a backend that answers, and calls each off.
func (s *scene) stalledCalls(ctx context.Context, req providers.CreateRequest, id string, see see) {
	release := s.suite.Lab.Stall(s.host, s.p)
	defer release()
	for _, c := range s.calls(req, id) {
		bounded, cancel := context.WithTimeout(ctx, max(s.suite.Poll, time.Millisecond))
		see(c.op, nil, s.answer(bounded, c))
		cancel()
	}
}
