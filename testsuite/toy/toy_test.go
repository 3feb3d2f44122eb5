package toy

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/registry"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

const installation = "test"

// factory is the line that providers/all would have.
func factory() registry.Factory {
	return registry.NewFactory(Type, func(ctx context.Context, env registry.Env, cfg Config) (*Provider, error) {
		return New(ctx, env.Name, env.Installation, cfg)
	})
}

func build(t *testing.T, dir string) *Provider {
	t.Helper()
	block, err := json.Marshal(Config{Dir: dir})
	require.NoError(t, err)
	p, err := factory().Build(t.Context(), registry.Env{Name: "here", Installation: installation}, block)
	require.NoError(t, err)
	return p.(*Provider)
}

// seams has what a test does to calls at the seam, by the provider's folder.
var seams sync.Map

// stall lets calls wait at the seam until it is released.
func stall(_ *testing.T, p providers.Provider) (release func()) {
	dir := p.(*Provider).dir
	released := make(chan struct{})
	seams.Store(dir, func(ctx context.Context) {
		select {
		case <-released:
		case <-ctx.Done():
		}
	})
	return sync.OnceFunc(func() {
		seams.Delete(dir)
		close(released)
	})
}

func openAtSeam(ctx context.Context, dir string) (*os.Root, error) {
	if meet, set := seams.Load(dir); set {
		meet.(func(context.Context))(ctx)
	}
	return open(ctx, dir)
}

func TestContract(t *testing.T) {
	t.Parallel()
	providertest.Suite{
		Installation: installation,
		Name:         "here",
		Checker:      true,
		Inventory:    true,
		ListsState:   true,
		New: func(t *testing.T) providers.Provider {
			p := build(t, t.TempDir())
			p.open = openAtSeam
			return p
		},
		Lab: providertest.Lab{
			Reopen: func(t *testing.T, p providers.Provider) providers.Provider {
				return build(t, p.(*Provider).dir)
			},
			Neighbour: func(t *testing.T, p providers.Provider, installation string) providers.Provider {
				neighbour, err := New(t.Context(), "here", installation, Config{Dir: p.(*Provider).dir})
				require.NoError(t, err)
				return neighbour
			},
			Backend: func(_ *testing.T, p providers.Provider, see func(context.Context)) {
				seams.Store(p.(*Provider).dir, see)
			},
			Plant:     plant,
			Squat:     squat,
			Break:     unmount,
			Stall:     stall,
			Leftovers: leftovers,
		},
	}.Run(t)
}

// plant makes links that Create did not make: one of nobody, one of another installation.
func plant(t *testing.T, p providers.Provider) []string {
	t.Helper()
	dir := p.(*Provider).dir
	foreign := providers.CreateRequest{Name: "foreign", UID: "u", Installation: "elsewhere"}
	text, err := newRecord(idPrefix+foreign.Name, foreign)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(text, filepath.Join(dir, foreign.Name)))
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "bare")))
	return []string{idPrefix + foreign.Name, idPrefix + "bare"}
}

// squat makes a link in the place of an instance, without one of its marks.
func squat(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
	t.Helper()
	text, err := newRecord(idPrefix+req.Name, req)
	require.NoError(t, err)
	var r record
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	switch missing {
	case providers.MarkManaged:
		r.Managed = ""
	case providers.MarkUID:
		r.Instance.UID = ""
	case providers.MarkInstallation:
		r.Instance.Installation = ""
	}
	squatting, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(string(squatting), filepath.Join(p.(*Provider).dir, req.Name)))
}

// unmount takes the folder away, as a disk that fails does.
func unmount(t *testing.T, p providers.Provider) (mount func()) {
	t.Helper()
	dir := p.(*Provider).dir
	require.NoError(t, os.Rename(dir, dir+"-aside"))
	return func() { require.NoError(t, os.Rename(dir+"-aside", dir)) }
}

// leftovers looks past the provider, at the folder itself.
func leftovers(t *testing.T, p providers.Provider, uid string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(p.(*Provider).dir, providers.NameFromUID(uid)+"*"))
	require.NoError(t, err)
	return left
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want providers.Class
	}{
		"a link that is not in its folder": {fault{providers.ErrNotFound, fs.ErrNotExist}, providers.ErrNotFound},
		"a folder that is not there":       {fs.ErrNotExist, providers.ErrTransient},
		"a full disk":                      {&fs.PathError{Err: syscall.ENOSPC}, providers.ErrQuotaExceeded},
		"a full quota":                     {&fs.PathError{Err: syscall.EDQUOT}, providers.ErrQuotaExceeded},
		"a record too long for a link":     {&fs.PathError{Err: syscall.ENAMETOOLONG}, providers.ErrPermanent},
		"a malformed ID":                   {permanent("providerID: %q", "x"), providers.ErrPermanent},
		"no error of a file system at all": {errors.New("odd"), providers.ErrTransient},
	} {
		require.Equal(t, c.want, classify(c.err), name)
	}
}

func TestAProvidersFileIsTaken(t *testing.T) {
	t.Parallel()
	entries, err := registry.LoadFile("testdata/providers.yaml")
	require.NoError(t, err)
	set, err := registry.Build(t.Context(), registry.Options{
		Installation: installation, Entries: entries, Factories: []registry.Factory{factory()},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"here"}, set.Names())
	_, err = factory().Build(t.Context(), registry.Env{Name: "here"}, nil)
	require.ErrorContains(t, err, `dir: "" must name a folder`)
}
