package kvm

import (
	"context"
	"sync"
)

// names serialises what this process does about one instance. Other workers do the same at
// the same time: that no name has two domains is libvirt's doing, this only keeps calls of
// one process from undoing each other's steps.
type names struct {
	mu   sync.Mutex
	held map[string]*turn
}

// turn is the right to act on a name. A channel, for a mutex knows no context.
type turn struct {
	token   chan struct{}
	waiting int
}

// hold waits for the turn of a name; the function that it returns gives it back.
func (n *names) hold(ctx context.Context, name string) (release func(), err error) {
	t := n.join(name)
	select {
	case t.token <- struct{}{}:
		return func() { <-t.token; n.leave(name, t) }, nil
	case <-ctx.Done():
		n.leave(name, t)
		return nil, context.Cause(ctx)
	}
}

func (n *names) join(name string) *turn {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.held[name]
	if t == nil {
		t = &turn{token: make(chan struct{}, 1)}
		if n.held == nil {
			n.held = map[string]*turn{}
		}
		n.held[name] = t
	}
	t.waiting++
	return t
}

func (n *names) leave(name string, t *turn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t.waiting--; t.waiting == 0 {
		delete(n.held, name)
	}
}
