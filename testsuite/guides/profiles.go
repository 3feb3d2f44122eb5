package guides

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/all"
	"github.com/egressfleet/egressfleet/providers/registry"
)

// The samples that every type has, in docs/samples/<type>.
const (
	SampleProviders = "providers.yaml"
	SampleProxy     = "proxy.yaml"
)

// Sample returns the path of a type's sample below the module's root.
func Sample(root, typ, file string) string { return filepath.Join(root, "docs", "samples", typ, file) }

// Typed is a type of provider and its answers.
type Typed struct {
	Type    string
	Profile providers.Profile
}

// Profiles asks every registered type for its profile, in the order of the factories.
// The provider that answers is built from the type's own sample: constructors dial
// nothing, so this needs no backend, and a profile may depend on the configuration.
func Profiles(ctx context.Context, root string) ([]Typed, error) {
	var typed []Typed
	for _, f := range all.Factories() {
		profile, err := profileOf(ctx, root, f)
		if err != nil {
			return nil, fmt.Errorf("type %q: %w", f.Type(), err)
		}
		typed = append(typed, Typed{Type: f.Type(), Profile: profile})
	}
	return typed, nil
}

func profileOf(ctx context.Context, root string, f registry.Factory) (profile providers.Profile, _ error) {
	path := Sample(root, f.Type(), SampleProviders)
	entries, err := registry.LoadFile(path)
	if err != nil {
		return profile, err
	}
	for _, e := range entries {
		if e.Type != f.Type() {
			return profile, fmt.Errorf("%s: %q is of the type %q", path, e.Name, e.Type)
		}
	}
	if len(entries) == 0 {
		return profile, fmt.Errorf("%s: has no provider", path)
	}
	p, err := f.Build(ctx, registry.Env{Name: entries[0].Name, Installation: "sample"}, entries[0].Block)
	if err != nil {
		return profile, fmt.Errorf("%s: %w", path, err)
	}
	profiler, ok := providers.As[providers.Profiler](p)
	if !ok {
		return profile, fmt.Errorf("%s: the provider is no providers.Profiler", path)
	}
	return profiler.Profile(), providers.Close(p)
}
