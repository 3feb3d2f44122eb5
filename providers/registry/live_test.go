package registry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/testsuite/fake"
)

// vault is a provider that keeps what it has read of its credential file.
type vault struct {
	*fake.Provider
	cfg    vaultConfig
	token  string
	closed atomic.Bool
}

type vaultConfig struct {
	Size      int    `json:"size"`
	TokenFile string `json:"tokenFile"`
}

func newVault(_ context.Context, env registry.Env, cfg vaultConfig) (*vault, error) {
	v := &vault{Provider: fake.New(env.Name), cfg: cfg}
	if cfg.Size < 0 {
		return nil, fmt.Errorf("size: %d is less than 0", cfg.Size)
	}
	if cfg.TokenFile == "" {
		return v, nil
	}
	text, err := os.ReadFile(cfg.TokenFile)
	if err == nil && !strings.HasPrefix(string(text), "token-") {
		return nil, errors.New("tokenFile: does not hold a token")
	}
	v.token = string(text) // one that is not there yet may come
	return v, nil
}

func (v *vault) Close() error { v.closed.Store(true); return nil }

func (v *vault) CredentialFiles() []string {
	if v.cfg.TokenFile == "" {
		return nil
	}
	return []string{v.cfg.TokenFile}
}

// decorated is what Lookup returns: a provider behind a decorator.
type decorated struct{ providers.Provider }

func (d decorated) Unwrap() providers.Provider { return d.Provider }

// bench is a Live on a file of its own.
type bench struct {
	t     *testing.T
	dir   string
	live  *registry.Live
	heard chan registry.Outcome
}

func newBench(t *testing.T) *bench { return newPolledBench(t, 0) }

func newPolledBench(t *testing.T, poll time.Duration) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), heard: make(chan registry.Outcome, 100)}
	b.live = registry.NewLive(registry.LiveOptions{
		File: b.path("providers.yaml"), Poll: poll, Reloaded: func(o registry.Outcome) { b.heard <- o },
		Options: registry.Options{
			Installation: "dev", Factories: []registry.Factory{registry.NewFactory("vault", newVault)},
			Decorate: func(_, _ string, p providers.Provider) providers.Provider { return decorated{p} },
		},
	})
	t.Cleanup(func() { require.NoError(t, b.live.Close()) })
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) {
	b.t.Helper()
	require.NoError(b.t, os.WriteFile(b.path(name), []byte(text), 0o600))
}

// configure writes the file and loads it, which must work.
func (b *bench) configure(text string) registry.Outcome {
	b.t.Helper()
	b.write("providers.yaml", text)
	require.NoError(b.t, b.live.Load(b.t.Context()))
	return <-b.heard
}

// use looks a provider up for a call that lasts until release.
func (b *bench) use(name string) (v *vault, release func()) {
	b.t.Helper()
	p, release, ok := b.live.Lookup(name)
	require.True(b.t, ok, name)
	v, ok = providers.As[*vault](p)
	require.True(b.t, ok)
	return v, release
}

// one returns the provider that a call of now would use.
func (b *bench) one(name string) *vault {
	b.t.Helper()
	v, release := b.use(name)
	release()
	return v
}

func TestALoadKeepsWhatHasNotChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.configure(`providers: [{name: a, type: vault}, {name: b, type: vault}, {name: c, type: vault}]`)
	require.Equal(t, []string{"a", "b", "c"}, first.Added)
	kept, changed, removed := b.one("a"), b.one("b"), b.one("c")

	o := b.configure(`# moved, and said in other words
providers:
- {name: d, type: vault}
- {name: b, type: vault, vault: {size: 2}}
- {name: a, type: vault, vault: null}
`)
	require.Equal(t, registry.Change{
		Kept: []string{"a"}, Added: []string{"d"}, Changed: []string{"b"}, Removed: []string{"c"},
	}, o.Change)
	require.Equal(t, []string{"a", "b", "d"}, o.Names)
	require.Same(t, kept, b.one("a"), "its connections stay")
	require.NotSame(t, changed, b.one("b"))
	require.Equal(t, 2, b.one("b").cfg.Size)
	require.False(t, kept.closed.Load())
	require.True(t, changed.closed.Load())
	require.True(t, removed.closed.Load())
	_, _, ok := b.live.Lookup("c")
	require.False(t, ok)
}

func TestAReplacedProviderIsClosedWhenItsLastCallHasEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(`providers: [{name: a, type: vault}, {name: b, type: vault}]`)
	a, endFirst := b.use("a")
	_, endSecond := b.use("a")
	gone, endGone := b.use("b")
	b.configure(`providers: [{name: a, type: vault, vault: {size: 1}}]`)
	require.NotSame(t, a, b.one("a"), "the next call has the new one")
	require.False(t, a.closed.Load())
	endFirst()
	endFirst() // counts once
	require.False(t, a.closed.Load(), "a call is under way")
	endSecond()
	require.True(t, a.closed.Load())
	require.False(t, gone.closed.Load())
	endGone()
	require.True(t, gone.closed.Load())
}

func TestCloseWaitsForTheCallsThatAreUnderWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(`providers: [{name: a, type: vault}, {name: b, type: vault}]`)
	a, end := b.use("a")
	idle := b.one("b")
	require.NoError(t, b.live.Close())
	require.True(t, idle.closed.Load())
	require.False(t, a.closed.Load())
	end()
	require.True(t, a.closed.Load())
	_, _, ok := b.live.Lookup("a")
	require.False(t, ok)
}

func TestABadFileKeepsEverything(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"bad syntax":        {"providers: [", "is not YAML"},
		"a half of it":      {"", "providers: is missing or not a list"},
		"an unknown key":    {"providers: [{name: a, type: vault, vault: {sise: 1}}]", `unknown key "sise", want size`},
		"two of one name":   {"providers: [{name: a, type: vault}, {name: a, type: vault}]", `[1].name: "a" is also the`},
		"a bad name":        {"providers: [{name: A, type: vault}]", `providers[0].name: "A" is not a DNS label`},
		"an unknown type":   {"providers: [{name: a, type: valut}]", `providers[0].type: "valut" is not a provider type`},
		"one of two is bad": {"providers: [{name: n1, type: vault}, {name: a, type: vault, vault: {size: -1}}]", "size: -1"},
		"the file is gone":  {"gone", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			good := `providers: [{name: a, type: vault}]`
			b.configure(good)
			a := b.one("a")
			b.write("providers.yaml", c.file)
			if c.file == "gone" {
				require.NoError(t, os.Remove(b.path("providers.yaml")))
			}

			require.ErrorContains(t, b.live.Load(t.Context()), c.want)
			o := <-b.heard
			require.ErrorContains(t, o.Err, b.path("providers.yaml"))
			require.Equal(t, []string{"a"}, o.Names)
			require.Empty(t, o.Touched())
			require.Same(t, a, b.one("a"))
			require.False(t, a.closed.Load())
			status := b.live.Status()
			require.Contains(t, status.Fault, c.want)
			require.Contains(t, status.Fault, "providers.yaml")
			require.NotContains(t, status.Fault, b.dir, "only the file's own name")
			require.False(t, status.Since.IsZero())
			require.True(t, status.LoadedAt.Before(status.Since))
			require.Len(t, status.Providers, 1)

			require.Error(t, b.live.Load(t.Context()))
			require.Empty(t, b.heard, "the same fault is no news")
			require.Equal(t, status, b.live.Status(), "nor is it a younger one")

			require.Equal(t, []string{"a"}, b.configure(good).Kept)
			require.Same(t, a, b.one("a"))
			require.Empty(t, b.live.Status().Fault)
			require.True(t, b.live.Status().Since.IsZero())
		})
	}
}

// Field report kubernetes-sigs/cluster-api-provider-vsphere#1275: new credentials took
// a restart.
func TestASwappedCredentialIsUsedByTheNextCall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("token", "token-1")
	file := `providers: [{name: a, type: vault, vault: {tokenFile: ` + b.path("token") + `}}, {name: b, type: vault}]`
	b.configure(file)
	old, other := b.one("a"), b.one("b")
	require.Equal(t, "token-1", old.token)

	b.write("token", "token-2")
	o := b.configure(file)
	require.Equal(t, []string{"a"}, o.Changed)
	require.Equal(t, "token-2", b.one("a").token)
	require.True(t, old.closed.Load())
	require.Same(t, other, b.one("b"))

	good := b.one("a")
	for problem, spoil := range map[string]func(){
		"tokenFile: does not hold a token": func() { b.write("token", secret) },
		"is gone or cannot be read":        func() { require.NoError(t, os.Remove(b.path("token"))) },
	} {
		spoil()
		err := b.live.Load(t.Context())
		require.ErrorContains(t, err, `providers[0]: provider "a": `)
		require.ErrorContains(t, err, problem)
		require.NotContains(t, err.Error(), secret)
		<-b.heard
		require.Same(t, good, b.one("a"))
		require.False(t, good.closed.Load())
	}
	b.write("token", "token-2")
	require.Equal(t, []string{"a", "b"}, b.configure(file).Kept, "it is as it was")
}

func TestACredentialThatComesLaterBuildsItsProviderAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := `providers: [{name: a, type: vault, vault: {tokenFile: ` + b.path("token") + `}}]`
	b.configure(file)
	require.Empty(t, b.one("a").token)
	b.write("token", "token-1")
	require.Equal(t, []string{"a"}, b.configure(file).Changed)
	require.Equal(t, "token-1", b.one("a").token)
}

func TestACredentialThatIsNotThereIsAWarning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "providers.yaml")
	var log strings.Builder
	live := registry.NewLive(registry.LiveOptions{
		File: file, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Options: registry.Options{
			Installation: "dev", Factories: []registry.Factory{registry.NewFactory("vault", newVault)},
		},
	})
	t.Cleanup(func() { require.NoError(t, live.Close()) })
	load := func(block string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(`providers: [{name: a, type: vault, vault: `+block+`}]`), 0o600))
		require.NoError(t, live.Load(t.Context()))
	}
	load(`{}`)
	require.Empty(t, log.String(), "a provider without credentials lacks none")
	load(`{tokenFile: ` + token + `}`)
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "provider=a file="+token)
	log.Reset()
	require.NoError(t, live.Load(t.Context()))
	require.Empty(t, log.String(), "it is told once")
	require.NoError(t, os.WriteFile(token, []byte("token-1"), 0o600))
	require.NoError(t, live.Load(t.Context()))
	require.Empty(t, log.String(), "it is there")
}

func TestCallsGoOnDuringLoads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure(`providers: [{name: a, type: vault}]`)
	var calls sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		calls.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				p, release, ok := b.live.Lookup("a")
				if v, is := providers.As[*vault](p); !ok || !is || v.closed.Load() {
					t.Error("a call has a provider that is closed, or none")
				}
				release()
			}
		})
	}
	for i := range 50 {
		b.configure(fmt.Sprintf(`providers: [{name: a, type: vault, vault: {size: %d}}]`, i))
	}
	close(stop)
	calls.Wait()
}

func TestTheStatusTellsOfEachProvider(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.Empty(t, b.live.Status().Providers)
	require.True(t, b.live.Status().LoadedAt.IsZero())
	b.configure(`providers: [{name: b, type: vault}, {name: a, type: vault}]`)
	b.configure(`providers: [{name: b, type: vault, vault: {size: 1}}, {name: a, type: vault}]`)
	s := b.live.Status()
	require.Equal(t, "providers.yaml", s.File)
	require.Equal(t, []string{"a", "b"}, []string{s.Providers[0].Name, s.Providers[1].Name})
	require.Equal(t, "vault", s.Providers[0].Type)
	require.Equal(t, fake.New("x").Profile(), s.Providers[0].Profile)
	require.True(t, s.Providers[0].BuiltAt.Before(s.Providers[1].BuiltAt), "a was kept by the second load")
}

// restless reads its credential file, and does something before it is made.
func restless(file string, meanwhile func(made int) (named string)) *registry.Live {
	made := 0
	return registry.NewLive(registry.LiveOptions{File: file, Options: registry.Options{
		Installation: "dev",
		Factories: []registry.Factory{registry.NewFactory("vault",
			func(ctx context.Context, env registry.Env, cfg vaultConfig) (*vault, error) {
				v, err := newVault(ctx, env, cfg)
				made++
				v.cfg.TokenFile = meanwhile(made)
				return v, err
			})},
	}})
}

func TestACredentialThatChangesWhileItIsReadIsReadOnceMore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("token", "token-1")
	b.write("providers.yaml", `providers: [{name: a, type: vault, vault: {tokenFile: `+b.path("token")+`}}]`)
	b.live = restless(b.path("providers.yaml"), func(made int) string {
		if made == 2 { // the first one only tells which files there are
			b.write("token", "token-2")
		}
		return b.path("token")
	})
	require.NoError(t, b.live.Load(t.Context()))
	require.Equal(t, "token-1", b.one("a").token)
	require.NoError(t, b.live.Load(t.Context()))
	require.Equal(t, "token-2", b.one("a").token)
	settled := b.one("a")
	require.NoError(t, b.live.Load(t.Context()))
	require.Same(t, settled, b.one("a"))
}

func TestCredentialFilesFollowFromTheConfiguration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("providers.yaml", `providers: [{name: a, type: vault}]`)
	b.live = restless(b.path("providers.yaml"), func(made int) string { return b.path(fmt.Sprint("token-", made)) })
	require.ErrorContains(t, b.live.Load(t.Context()),
		`providers[0]: provider "a": names other credential files each time it is made`)
}
