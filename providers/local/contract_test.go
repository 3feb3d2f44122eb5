package local_test

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
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
		Reopen: func(t *testing.T, p providers.Provider) providers.Provider {
			return m.of(t, p).reopen()
		},
		Plant: func(t *testing.T, p providers.Provider) []string {
			return m.of(t, p).plant()
		},
		Break: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).unmount(t)
		},
		Leftovers: func(t *testing.T, p providers.Provider, uid string) []string {
			return m.of(t, p).leftovers(uid)
		},
	}.Run(t)
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

func (l *lab) leftovers(uid string) []string {
	l.Helper()
	name := providers.NameFromUID(uid)
	left, err := filepath.Glob(filepath.Join(l.root(), "*"+name+"*"))
	require.NoError(l, err)
	for _, pid := range l.processes() {
		left = append(left, "process "+strconv.Itoa(pid))
	}
	return left
}
