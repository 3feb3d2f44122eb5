package activities

import (
	"context"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

const (
	// preparingAtOnce is how many slots of a worker the Prepares of one provider hold: a
	// fleet that waits for one image must not keep deletes from being served.
	preparingAtOnce = 4
	// nextTurn is after how long one that found no slot asks again.
	nextTurn = 10 * time.Second
)

// PrepareInput says for which instance a provider has to prepare. Serialised in history.
type PrepareInput struct {
	Provider  string              `json:"provider"`
	UID       string              `json:"uid"`
	Attempt   int                 `json:"attempt"`
	Owner     string              `json:"owner"`
	Placement providers.Placement `json:"placement,omitzero"`
	Port      int                 `json:"port"`
}

// PrepareInstance has the provider fetch what a create of the instance needs. One that
// finds preparingAtOnce others at it on this worker is asked again later, which writes
// no history. A provider with nothing to prepare has prepared.
func (a *Instances) PrepareInstance(ctx context.Context, in PrepareInput) error {
	leave, ok := a.preparing.enter(in.Provider)
	if !ok {
		return unchanged(nextTurn)
	}
	defer leave()
	_, err := call(ctx, a, in.Provider, func(ctx context.Context, p providers.Provider) (struct{}, error) {
		preparer, ok := providers.As[providers.Preparer](p)
		if !ok {
			return struct{}{}, nil
		}
		return struct{}{}, preparer.Prepare(ctx, providers.CreateRequest{
			Name: providers.NameFromUID(in.UID), UID: in.UID, Attempt: in.Attempt,
			Installation: a.Installation, Owner: in.Owner, Placement: in.Placement, Port: in.Port,
		})
	})
	return err
}

// turns counts who is at something, by provider.
type turns struct {
	mu  sync.Mutex
	now map[string]int
}

func (t *turns) enter(provider string) (leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == nil {
		t.now = map[string]int{}
	}
	if t.now[provider] >= preparingAtOnce {
		return nil, false
	}
	t.now[provider]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.now[provider]--
	}, true
}
