package kvm

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

// labs finds the lab of a provider that the suite was given.
type labs struct{ all sync.Map }

func (m *labs) open(t *testing.T) providers.Provider {
	l := newLab("a", "b")
	l.withImage(t, qcow2(2<<30), formatQCOW2)
	l.fetched()
	p := l.open(t)
	p.bounds.call, p.bounds.start, p.bounds.transfer = callBound, callBound, callBound
	m.all.Store(providers.Provider(p), l)
	return p
}

// callBound is long for a libvirt in memory and short for the suite.
const callBound = time.Second

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
		New: m.open, Installation: installation, Name: providerName,
		Checker: true, Inventory: true, ListsState: true,
		Request: func(_ *testing.T, req *providers.CreateRequest) {
			req.Placement = providers.Placement{Zone: "a", MachineType: smallMachine, Image: debian}
		},
		Lab: m.hooks(),
	}.Run(t)
}

// hooks are what a test can do to hosts in memory.
func (m *labs) hooks() providertest.Lab {
	hooks := m.backendHooks()
	hooks.Break = func(t *testing.T, p providers.Provider) func() {
		return m.of(t, p).each(func(h *fakeLink) func() { return h.fail(conn.StageDial, conn.Unreachable) })
	}
	hooks.Unprepare = func(t *testing.T, p providers.Provider) func() {
		l := m.of(t, p)
		l.forget()
		return l.fetched
	}
	hooks.Stall = func(t *testing.T, p providers.Provider) func() { return m.of(t, p).each((*fakeLink).stall) }
	hooks.CallWithin = 5 * callBound
	hooks.HalfWay = func(t *testing.T, p providers.Provider) func() {
		undo := m.of(t, p).answering(func(rpc, _ string) error {
			if rpc == rpcUpload {
				return says(libvirt.ErrInternalError, "internal error: the stream ended")
			}
			return nil
		})
		return func() {
			undo()
			m.of(t, p).each(func(h *fakeLink) func() { h.age(time.Hour); return nil }) // nobody comes back soon
		}
	}
	hooks.Part = &providertest.Part{
		Name:  location("b"),
		Place: func(req *providers.CreateRequest) { req.Placement.Zone = "b" },
		Cut: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).hosts["b"].fail(conn.StageDial, conn.Unreachable)
		},
	}
	hooks.Mount = func(t *testing.T, p providers.Provider, c providertest.Credential) {
		l := m.of(t, p)
		switch c {
		case providertest.CredentialMissing:
			l.each(func(h *fakeLink) func() { return h.fail(conn.StageFiles, conn.FileMissing) })
		case providertest.CredentialUnreadable:
			l.each(func(h *fakeLink) func() { return h.fail(conn.StageFiles, conn.FileInvalid) })
		case providertest.CredentialRotated:
			l.each(func(h *fakeLink) func() { return h.fail(conn.StageAuth, conn.Unauthorized) })()
		}
	}
	hooks.Refuse = func(t *testing.T, p providers.Provider) func() {
		return m.of(t, p).each(func(h *fakeLink) func() { return h.fail(conn.StageAuth, conn.Unauthorized) })
	}
	return hooks
}

// backendHooks are what somebody does on the hosts.
func (m *labs) backendHooks() providertest.Lab {
	return providertest.Lab{
		Reopen: func(t *testing.T, p providers.Provider) providers.Provider { return m.of(t, p).open(t) },
		Neighbour: func(t *testing.T, p providers.Provider, installation string) providers.Provider {
			return m.of(t, p).openFor(t, installation)
		},
		Plant: func(t *testing.T, p providers.Provider) []string {
			h, bare, foreign := m.of(t, p).hosts["a"], request("bare"), request("foreign")
			h.squat(t, bare, func(has *marks) { *has = marks{} })
			h.squat(t, foreign, func(has *marks) { has.Installation = "elsewhere" })
			return []string{formatID("a", bare.Name), formatID("a", foreign.Name)}
		},
		Squat: func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
			m.of(t, p).hosts["a"].squat(t, req, func(has *marks) {
				switch missing {
				case providers.MarkManaged:
					has.Managed = ""
				case providers.MarkUID:
					has.UID = ""
				case providers.MarkInstallation:
					has.Installation = ""
				}
			})
		},
		Orphan: func(t *testing.T, p providers.Provider, req providers.CreateRequest) {
			m.of(t, p).hosts["a"].orphan(t, req)
		},
		Leftovers: func(t *testing.T, p providers.Provider, uid string) []string { return m.of(t, p).left(uid) },
		Delivered: func(t *testing.T, p providers.Provider, id string) []byte { return m.of(t, p).delivered(t, id) },
		Backend: func(t *testing.T, p providers.Provider, see func(context.Context)) {
			for _, h := range m.of(t, p).hosts {
				h.way.Lock()
				h.see = see
				h.way.Unlock()
			}
		},
		MaxCloudInit: maxCloudInit,
		Exhaust: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).each(func(h *fakeLink) func() { return h.exhaust() })
		},
		Confuse: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).answering(func(_, _ string) error {
				return says(libvirt.ErrNoStoragePool, "Storage pool not found: no storage pool with matching name 'gone'")
			})
		},
		Silence: func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).each(func(h *fakeLink) func() { return h.silence() })
		},
		Lock: func(t *testing.T, p providers.Provider, id string) func() {
			m.of(t, p).set(t, id, func(d *fakeDomain) { d.locked = true })
			return sync.OnceFunc(func() { m.of(t, p).set(t, id, func(d *fakeDomain) { d.locked = false }) })
		},
		PowerOff: func(t *testing.T, p providers.Provider, id string) {
			m.of(t, p).set(t, id, stateOf(libvirt.DomainShutoff, int32(libvirt.DomainShutoffDestroyed)))
		},
		Odd: func(t *testing.T, p providers.Provider, id string) { m.of(t, p).set(t, id, stateOf(42, 0)) },
	}
}

func (m *memory) exhaust() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	had := m.memoryFree
	m.memoryFree = 0
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.memoryFree = had
	}
}

func (m *memory) silence() (restore func()) {
	set := func(silent bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.silent = silent
	}
	set(true)
	return func() { set(false) }
}
