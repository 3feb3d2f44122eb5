package registry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

type config struct {
	Size   int    `json:"size"`
	Token  string `json:"token"`
	Nested struct {
		Zones []string `json:"zones"`
	} `json:"nested"`
	Hosts []struct {
		Name string `json:"name"`
	} `json:"hosts"`
	Images map[string]struct {
		URL string `json:"url"`
	} `json:"images"`
}

// check is what a constructor has against a configuration.
func (c config) check() error {
	for i, host := range c.Hosts {
		if err := providers.CheckLocation(fmt.Sprintf("hosts[%d].name", i), host.Name); err != nil {
			return err
		}
	}
	for key := range c.Images {
		if err := providers.CheckFileName("images", key); err != nil {
			return err
		}
	}
	return nil
}

// closing is a provider that can be closed.
type closing struct {
	*fake.Provider
	env    registry.Env
	cfg    config
	closed *int
}

func (c *closing) Close() error {
	*c.closed++
	if c.cfg.Size < 0 {
		return errors.New("still busy")
	}
	return nil
}

// factories knows the types "mem", which can be closed, and "broken", which refuses
// every configuration.
func factories(closed *int) []registry.Factory {
	return []registry.Factory{
		registry.NewFactory("mem", func(_ context.Context, env registry.Env, cfg config) (*closing, error) {
			return &closing{Provider: fake.New(env.Name), env: env, cfg: cfg, closed: closed}, cfg.check()
		}),
		registry.NewFactory("broken", func(context.Context, registry.Env, config) (*closing, error) {
			return nil, errors.New("zone is empty")
		}),
		registry.NewFactory("panicking", func(_ context.Context, _ registry.Env, cfg config) (*closing, error) {
			panic(cfg.Token)
		}),
	}
}

func build(t *testing.T, file string, closed *int) (*registry.Set, error) {
	t.Helper()
	entries, err := registry.LoadFile(write(t, file))
	require.NoError(t, err)
	quiet := providers.WithLogger(t.Context(), slog.New(slog.DiscardHandler))
	return registry.Build(quiet, registry.Options{
		Installation: "dev", Entries: entries, Factories: factories(closed),
	})
}

func TestBuildConstructsEveryEntryFromItsBlock(t *testing.T) {
	t.Parallel()
	set, err := build(t, `
providers:
  - {name: b, type: mem, mem: {size: 3, nested: {zones: [z1]}}}
  - {name: a, type: mem}
  - {name: c, type: mem, mem: }
`, new(int))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, set.Names())

	p, ok := set.Lookup("b")
	require.True(t, ok)
	b, ok := p.(*closing)
	require.True(t, ok)
	require.Equal(t, registry.Env{Name: "b", Installation: "dev"}, b.env)
	require.Equal(t, 3, b.cfg.Size)
	require.Equal(t, []string{"z1"}, b.cfg.Nested.Zones)

	_, ok = set.Lookup("d")
	require.False(t, ok)
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"an unknown type, naming those it knows": {
			"providers: [{name: a, type: gpc}]",
			`providers[0].type: "gpc" is not a provider type; known types: broken, mem, panicking`,
		},
		"an unknown key of a block": {
			"providers: [{name: a, type: mem, mem: {sise: 3}}]",
			`providers[0]: provider "a": mem: unknown key "sise", want size, token, nested, hosts, images`,
		},
		"an unknown key deep in a block": {
			"providers: [{name: a, type: mem, mem: {nested: {zone: x}}}]",
			`provider "a": mem: unknown key "zone" in nested, want zones`,
		},
		"a key in another case": {
			"providers: [{name: a, type: mem, mem: {Size: 3}}]", `mem: unknown key "Size", want size, token`,
		},
		"an unknown key in a list": {
			"providers: [{name: a, type: mem, mem: {hosts: [{name: x}, {nam: " + secret + "}]}}]",
			`provider "a": mem: unknown key "nam" in hosts[1], want name`,
		},
		"an unknown key in a catalogue": {
			"providers: [{name: a, type: mem, mem: {images: {d: {ulr: " + secret + "}}}}]",
			`provider "a": mem: unknown key "ulr" in images.d, want url`,
		},
		"a list in the place of a mapping": {
			"providers: [{name: a, type: mem, mem: {nested: [" + secret + "]}}]", `mem: nested: is a list, want a mapping`,
		},
		"a location with the separator of an ID": {
			"providers: [{name: a, type: mem, mem: {hosts: [{name: rack/1}]}}]",
			`providers[0]: provider "a": hosts[0].name: "rack/1" holds "/", which separates location and name in an ID`,
		},
		"a key of a catalogue that leads out of its folder": {
			"providers: [{name: a, type: mem, mem: {images: {../d: {}}}}]",
			`providers[0]: provider "a": images: "../d" is not safe as a file name`,
		},
		"a constructor that panics": {
			"providers: [{name: a, type: panicking, panicking: {token: " + secret + "}}]",
			`providers[0]: provider "a": its constructor panicked with a string; the log has the stack`,
		},
		"a word in the place of a number": {
			"providers: [{name: a, type: mem, mem: {size: " + secret + "}}]", `mem: size: is a string, want int`,
		},
		"a number in the place of a word": {
			"providers: [{name: a, type: mem, mem: {token: 5318008}}]", `mem: token: is a number, want string`,
		},
		"a block that is no mapping": {
			"providers: [{name: a, type: mem, mem: " + secret + "}]", `mem: is a string, want a mapping`,
		},
		"what a constructor refuses": {
			"providers: [{name: a, type: broken}]", `providers[0]: provider "a": zone is empty`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := build(t, c.file, new(int))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "providers.yaml: ")
			require.NotContains(t, err.Error(), secret)
			require.NotContains(t, err.Error(), "5318008")
			require.Nil(t, set)
		})
	}
}

func TestBuildRefusesEntriesThatNoFileHolds(t *testing.T) {
	t.Parallel()
	mem := func(names ...string) (entries []registry.Entry) {
		for _, name := range names {
			entries = append(entries, registry.Entry{Name: name, Type: "mem"})
		}
		return entries
	}
	for name, c := range map[string]struct {
		installation string
		entries      []registry.Entry
		want         string
	}{
		"a wrong installation": {"Dev", mem("a"), `installation: "Dev" is not a DNS label`},
		"no installation":      {"", mem("a"), `installation: "" is not a DNS label`},
		"a wrong name":         {"dev", mem("a", "b_c"), `providers[1].name: "b_c" is not a DNS label`},
		"one name twice":       {"dev", mem("a", "a"), `providers[1].name: "a" is also the name of providers[0]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := registry.Build(t.Context(), registry.Options{
				Installation: c.installation, Entries: c.entries, Factories: factories(new(int)),
			})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestATypeIsAWordOfItsOwn(t *testing.T) {
	t.Parallel()
	typed := func(words ...string) (all []registry.Factory) {
		for _, word := range words {
			all = append(all, registry.NewFactory(word, func(context.Context, registry.Env, config) (*closing, error) {
				return nil, errors.New("is not built")
			}))
		}
		return all
	}
	for want, words := range map[string][]string{
		`provider type: "name" is a key of every entry`: {"a", "name"},
		`provider type: "type" is a key of every entry`: {"type"},
		`provider type: "" is not a DNS label`:          {""},
		`provider type: "a" has two factories`:          {"a", "b", "a"},
	} {
		_, err := registry.Build(t.Context(), registry.Options{Installation: "dev", Factories: typed(words...)})
		require.ErrorContains(t, err, want)
	}
}

// wrapped is a decorator that hides what it wraps.
type wrapped struct {
	providers.Provider
	name, typ string
}

func TestDecorateWrapsAndCloseStillReachesTheProvider(t *testing.T) {
	t.Parallel()
	closed := 0
	set, err := registry.Build(t.Context(), registry.Options{
		Installation: "dev", Entries: []registry.Entry{{Name: "a", Type: "mem"}}, Factories: factories(&closed),
		Decorate: func(name, typ string, p providers.Provider) providers.Provider {
			return wrapped{Provider: p, name: name, typ: typ}
		},
	})
	require.NoError(t, err)
	p, ok := set.Lookup("a")
	require.True(t, ok)
	w, ok := p.(wrapped)
	require.True(t, ok)
	require.Equal(t, [2]string{"a", "mem"}, [2]string{w.name, w.typ})
	require.NoError(t, set.Close())
	require.Equal(t, 1, closed)
}

func TestAFailedBuildClosesWhatItHasBuilt(t *testing.T) {
	t.Parallel()
	closed := 0
	_, err := build(t, "providers: [{name: a, type: mem}, {name: b, type: broken}]", &closed)
	require.ErrorContains(t, err, `provider "b": zone is empty`)
	require.Equal(t, 1, closed)
}

func TestCloseGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	closed := 0
	set, err := build(t, "providers: [{name: a, type: mem, mem: {size: -1}}, {name: b, type: mem}]", &closed)
	require.NoError(t, err)
	require.ErrorContains(t, set.Close(), `close provider "a": still busy`)
	require.Equal(t, 2, closed)
}
