// Package registry turns a providers file into named providers: LoadFile reads the
// entries, Build constructs them with the factories of the types that are known, and
// Live follows the file while calls are made. It imports the contract, a YAML reader
// and fsnotify; it knows no provider type itself. Start reading at Build, then Live;
// file.go says what a providers file may hold.
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
	held map[string]*held
}

// Build constructs every entry. Constructors dial nothing, so an error is one of
// configuration: it names the entry, the key and the value, or the provider whose
// constructor refused. What was built before the error is closed again.
func Build(ctx context.Context, opts Options) (*Set, error) { return build(ctx, opts, &Set{}) }

// build is Build after a former set, whose providers it keeps where nothing has
// changed. An error leaves the former set as it is.
func build(ctx context.Context, opts Options, former *Set) (*Set, error) {
	if !isName(opts.Installation) {
		return nil, fmt.Errorf("installation: %s", badName(opts.Installation))
	}
	if err := errors.Join(checkTypes(opts.Factories), check(opts.Entries)); err != nil {
		return nil, err
	}
	set := &Set{held: map[string]*held{}}
	for i, entry := range opts.Entries {
		was := former.held[entry.Name]
		if was.fits(entry, was.files().digests()) {
			set.held[entry.Name] = was
			continue
		}
		h, err := opts.hold(ctx, i, was)
		if err != nil {
			return nil, errors.Join(err, set.leave(former))
		}
		set.held[entry.Name] = h
	}
	return set, nil
}

// hold constructs the provider of the i-th entry, in the place of another one or nil.
func (o Options) hold(ctx context.Context, i int, was *held) (*held, error) {
	entry := o.Entries[i]
	known := slices.IndexFunc(o.Factories, func(f Factory) bool { return f.Type() == entry.Type })
	if known < 0 {
		return nil, fmt.Errorf("%s.type: %q is not a provider type; known types: %s",
			entry.place(i), entry.Type, strings.Join(types(o.Factories), ", "))
	}
	h, err := construct(ctx, o.Factories[known], Env{Name: entry.Name, Installation: o.Installation}, entry, was)
	if err != nil {
		return nil, fmt.Errorf("%s: provider %q: %w", entry.place(i), entry.Name, err)
	}
	if o.Decorate != nil {
		h.provider = o.Decorate(entry.Name, entry.Type, h.bare)
	}
	return h, nil
}

// Lookup returns the provider of a name, and whether it is configured.
func (s *Set) Lookup(name string) (providers.Provider, bool) {
	h, ok := s.held[name]
	if !ok {
		return nil, false
	}
	return h.provider, true
}

// Names returns the configured names in alphabetical order.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.held)) }

// Close closes every provider that can be closed and is not in use; one that is, is
// closed when its last call ends. Call it once.
func (s *Set) Close() error { return s.leave(&Set{}) }

// leave gives up every provider that the other set does not have.
func (s *Set) leave(other *Set) error {
	var failed []error
	for _, name := range s.Names() {
		if h := s.held[name]; h != other.held[name] {
			failed = append(failed, h.leave())
		}
	}
	return errors.Join(failed...)
}

// checkTypes returns an error about a type whose word cannot stand in a file.
func checkTypes(factories []Factory) error {
	words := types(factories)
	for i, word := range words {
		switch {
		case !isName(word):
			return fmt.Errorf("provider type: %s", badName(word))
		case word == keyName || word == keyType:
			return fmt.Errorf("provider type: %q is a key of every entry", word)
		case i > 0 && word == words[i-1]:
			return fmt.Errorf("provider type: %q has two factories", word)
		}
	}
	return nil
}

func types(factories []Factory) []string {
	names := make([]string, 0, len(factories))
	for _, f := range factories {
		names = append(names, f.Type())
	}
	slices.Sort(names)
	return names
}
