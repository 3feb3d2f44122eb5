package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/local"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// labs finds the lab of a provider that the suite was given.
type labs struct{ all sync.Map }

func (m *labs) open(t *testing.T) providers.Provider {
	l := newLab(t)
	m.all.Store(l.Provider, l)
	return l.Provider
}

func (m *labs) of(t *testing.T, p providers.Provider) *lab {
	t.Helper()
	l, ok := m.all.Load(p)
	require.True(t, ok)
	return l.(*lab)
}

func TestContract(t *testing.T) {
	t.Parallel()
	m := new(labs)
	providertest.Suite{
		New:          m.open,
		Installation: installation,
		Name:         providerName,
		Checker:      true,
		Inventory:    true,
		ListsState:   true,
		Lab:          m.hooks(),
	}.Run(t)
}

// hooks are what a test can do to the folder, the disk and the processes.
func (m *labs) hooks() providertest.Lab {
	return providertest.Lab{
		Reopen: func(t *testing.T, p providers.Provider) providers.Provider {
			return m.of(t, p).reopen()
		},
		Neighbour: func(t *testing.T, p providers.Provider, installation string) providers.Provider {
			neighbour, err := local.New(t.Context(), providerName, installation, m.of(t, p).cfg)
			require.NoError(t, err)
			return neighbour
		},
		Plant: func(t *testing.T, p providers.Provider) []string {
			return m.of(t, p).plant()
		},
		Squat: func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
			m.of(t, p).writeRecord(req, func(rec map[string]any) { delete(rec["marks"].(map[string]string), missing) })
		},
		Orphan: func(t *testing.T, p providers.Provider, req providers.CreateRequest) {
			m.of(t, p).orphan(req)
		},
		Leftovers: func(t *testing.T, p providers.Provider, uid string) []string {
			return m.of(t, p).leftovers(uid)
		},
		Backend: func(_ *testing.T, p providers.Provider, see func(context.Context)) {
			local.Watch(p, see)
		},
		Break: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).unmount(t)
		},
		Stall: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).stall(t)
		},
		HalfWay: func(_ *testing.T, p providers.Provider) func() {
			return local.FailStarts(p)
		},
		Exhaust: func(_ *testing.T, p providers.Provider) func() {
			return local.Exhaust(p)
		},
		PowerOff: func(t *testing.T, p providers.Provider, id string) {
			m.of(t, p).kill(strings.TrimPrefix(id, "local/"))
		},
	}
}

// plant writes records that Create did not write; cleanUp takes them away.
func (l *lab) plant() []string {
	l.Helper()
	bare, unmanaged, foreign := request("bare"), request("unmanaged"), request("foreign")
	foreign.Installation = "elsewhere"
	l.writeRecord(bare, func(rec map[string]any) { delete(rec, "marks") })
	l.writeRecord(unmanaged, func(rec map[string]any) {
		delete(rec["marks"].(map[string]string), providers.MarkManaged)
	})
	l.writeRecord(foreign)
	return []string{"local/" + bare.Name, "local/" + unmanaged.Name, "local/" + foreign.Name}
}

// unmount takes dir away, as a disk that fails does.
func (l *lab) unmount(t *testing.T) (mount func()) {
	t.Helper()
	aside := l.dir + "-aside"
	require.NoError(t, os.Rename(l.dir, aside))
	return func() { require.NoError(t, os.Rename(aside, l.dir)) }
}

// leftovers names the folder and the process of an instance.
func (l *lab) leftovers(uid string) []string {
	l.Helper()
	name := providers.NameFromUID(uid)
	left, err := filepath.Glob(filepath.Join(l.root(), "*"+name+"*"))
	require.NoError(l, err)
	for _, pid := range l.processesIn(filepath.Join(l.root(), name)) {
		left = append(left, "process "+strconv.Itoa(pid))
	}
	return left
}

// orphan leaves the folder that a Create makes first, as a crash did long ago.
func (l *lab) orphan(req providers.CreateRequest) {
	l.Helper()
	folder := filepath.Join(l.root(), req.Name)
	require.NoError(l, os.MkdirAll(folder, 0o700))
	long := time.Now().Add(-time.Hour)
	require.NoError(l, os.Chtimes(folder, long, long))
}

// stall makes the disk hang: a read of a record does not return, as on a disk that does
// not answer, and another process holds the locks of the instances.
func (l *lab) stall(t *testing.T) (release func()) {
	t.Helper()
	local.Impatient(l.Provider, 100*time.Millisecond)
	aside := t.TempDir()
	var releases []func()
	for _, name := range l.folders() {
		record, kept := l.path(name, "record.json"), filepath.Join(aside, name)
		err := os.Rename(record, kept)
		if os.IsNotExist(err) {
			continue // a create that was called off is still tidying up
		}
		require.NoError(t, err)
		require.NoError(t, unix.Mkfifo(record, 0o600))
		folder, err := os.Open(filepath.Join(l.root(), name))
		require.NoError(t, err)
		require.NoError(t, syscall.Flock(int(folder.Fd()), syscall.LOCK_EX))
		releases = append(releases, func() {
			writer, err := os.OpenFile(record, os.O_RDWR, 0) // who waits for one goes on
			require.NoError(t, err)
			require.NoError(t, os.Rename(kept, record))
			require.NoError(t, writer.Close())
			require.NoError(t, folder.Close())
		})
	}
	return func() {
		for _, release := range releases {
			release()
		}
	}
}
