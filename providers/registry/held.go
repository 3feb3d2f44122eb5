package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/egressfleet/egressfleet/providers"
)

// held is a constructed provider with what it was made of. It is closed when nobody
// has it any more: neither a set nor a call that is under way.
type held struct {
	entry       Entry
	provider    providers.Provider // in its decorators
	bare        providers.Provider
	credentials digests // of the files that it names, from before it was constructed
	builtAt     time.Time
	users       atomic.Int64
}

// fits reports whether the provider may stay: what it was made of is still so.
func (h *held) fits(entry Entry, now digests) bool {
	return h != nil && h.entry.same(entry) && maps.Equal(h.credentials, now)
}

// same compares what a provider is made of, not where it was read.
func (e Entry) same(other Entry) bool {
	return e.Name == other.Name && e.Type == other.Type && bytes.Equal(e.configuration(), other.configuration())
}

// configuration is the block; null is the same as none.
func (e Entry) configuration() []byte {
	if bytes.Equal(e.Block, []byte("null")) {
		return nil
	}
	return e.Block
}

// files are the credential files that the provider names.
func (h *held) files() files {
	if h == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(h.credentials))
}

// enter takes the provider for one call, unless it is closed already.
func (h *held) enter() bool {
	for {
		users := h.users.Load()
		if users == 0 {
			return false
		}
		if h.users.CompareAndSwap(users, users+1) {
			return true
		}
	}
}

// leave gives the provider back; the last one closes it.
func (h *held) leave() error {
	if h.users.Add(-1) > 0 {
		return nil
	}
	if err := providers.Close(h.bare); err != nil {
		return fmt.Errorf("close provider %q: %w", h.entry.Name, err)
	}
	return nil
}

// settleTries bounds how often a provider is constructed until it names the files
// that were looked at before.
const settleTries = 3

// construct builds the provider of an entry. Its credential files are looked at
// before, so that a change during the construction shows as one later; which they are
// only a constructed provider can say, so the first one of a name is made twice.
func construct(ctx context.Context, f Factory, env Env, entry Entry, was *held) (*held, error) {
	named := was.files()
	for range settleTries {
		before := named.digests()
		p, err := f.Build(ctx, env, entry.Block)
		if err != nil {
			return nil, err
		}
		looked := named
		if named = filesOf(p); slices.Equal(named, looked) {
			h := &held{entry: entry, provider: p, bare: p, credentials: before, builtAt: time.Now()}
			h.users.Store(1)
			return h.unless(vanished(was, before))
		}
		if err := providers.Close(p); err != nil {
			return nil, fmt.Errorf("close: %w", err)
		}
	}
	return nil, errors.New("names other credential files each time it is made")
}

// unless returns the provider, or closes it because of an error.
func (h *held) unless(err error) (*held, error) {
	if err != nil {
		return nil, errors.Join(err, h.leave())
	}
	return h, nil
}

// vanished returns an error where a file is gone that a former provider had: calls go
// on with what that one knows.
func vanished(was *held, now digests) error {
	for _, path := range was.files() {
		if digest, named := now[path]; named && digest == absent && was.credentials[path] != absent {
			return fmt.Errorf("credential file %q is gone or cannot be read", path)
		}
	}
	return nil
}
