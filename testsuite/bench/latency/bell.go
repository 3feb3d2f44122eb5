package latency

import (
	"context"
	"sync"
	"time"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// bell is a backend that tells when it is asked to delete, and counts the looks.
type bell struct {
	*fake.Provider
	mu    sync.Mutex
	heard map[string]chan time.Time // by the ID of the instance
	looks map[string]int
}

func newBell(p *fake.Provider) *bell {
	return &bell{Provider: p, heard: map[string]chan time.Time{}, looks: map[string]int{}}
}

// listen returns what gets the time of the next Delete of an instance.
func (b *bell) listen(id string) <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard[id] = make(chan time.Time, 1)
	return b.heard[id]
}

// Delete is the provider's, and tells that it was asked for.
func (b *bell) Delete(ctx context.Context, id string) error {
	b.mu.Lock()
	if heard, ok := b.heard[id]; ok {
		heard <- time.Now()
		delete(b.heard, id)
	}
	b.mu.Unlock()
	return b.Provider.Delete(ctx, id)
}

// Get is the provider's, and counts as a look once it has been answered.
func (b *bell) Get(ctx context.Context, id string) (*providers.Instance, error) {
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.looks[id]++
	}()
	return b.Provider.Get(ctx, id)
}

func (b *bell) looked(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.looks[id] > 0
}
