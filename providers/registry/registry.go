// Package registry turns a providers file into named providers: LoadFile reads the
// entries, Build constructs them with the factories of the types that are known.
// It imports the contract and a YAML reader; it knows no provider type itself.
// Start reading at Build; file.go says what a providers file may hold.
package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egressfleet/egressfleet/providers"
)

// Options say what a Set is built from.
type Options struct {
	Installation string // DNS label; the mark on every instance
	Entries      []Entry
	Factories    []Factory // one for every known type
	// Decorate wraps a new provider; nil leaves it as it is. The outcome should have
	// Unwrap, or its optional interfaces are lost.
	Decorate func(name, typ string, p providers.Provider) providers.Provider
}

// Set is the configured providers by name. It does not change once it is built.
type Set struct {
	providers map[string]providers.Provider
	bare      map[string]providers.Provider // without decorators, to be closed
}

// Build constructs every entry. Constructors dial nothing, so an error is one of
// configuration: it names the entry, the key and the value, or the provider whose
// constructor refused. What was built before the error is closed again.
func Build(ctx context.Context, opts Options) (*Set, error) {
	if !isName(opts.Installation) {
		return nil, fmt.Errorf("installation: %s", badName(opts.Installation))
	}
	if err := check(opts.Entries); err != nil {
		return nil, err
	}
	set := &Set{providers: map[string]providers.Provider{}, bare: map[string]providers.Provider{}}
	for i := range opts.Entries {
		if err := set.add(ctx, i, opts); err != nil {
			return nil, errors.Join(err, set.Close())
		}
	}
	return set, nil
}

// add builds the i-th entry.
func (s *Set) add(ctx context.Context, i int, opts Options) error {
	entry := opts.Entries[i]
	known := slices.IndexFunc(opts.Factories, func(f Factory) bool { return f.Type() == entry.Type })
	if known < 0 {
		return fmt.Errorf("%s.type: %q is not a provider type; known types: %s",
			entry.place(i), entry.Type, strings.Join(types(opts.Factories), ", "))
	}
	p, err := opts.Factories[known].Build(ctx, Env{Name: entry.Name, Installation: opts.Installation}, entry.Block)
	if err != nil {
		return fmt.Errorf("%s: provider %q: %w", entry.place(i), entry.Name, err)
	}
	s.bare[entry.Name], s.providers[entry.Name] = p, p
	if opts.Decorate != nil {
		s.providers[entry.Name] = opts.Decorate(entry.Name, entry.Type, p)
	}
	return nil
}

// Lookup returns the provider of a name, and whether it is configured.
func (s *Set) Lookup(name string) (providers.Provider, bool) {
	p, ok := s.providers[name]
	return p, ok
}

// Names returns the configured names in alphabetical order.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.providers)) }

// Close closes every provider that can be closed. Call it once, after the last
// call to a provider has ended.
func (s *Set) Close() error {
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(s.bare)) {
		if err := providers.Close(s.bare[name]); err != nil {
			failed = append(failed, fmt.Errorf("close provider %q: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

func types(factories []Factory) []string {
	names := make([]string, 0, len(factories))
	for _, f := range factories {
		names = append(names, f.Type())
	}
	slices.Sort(names)
	return names
}
