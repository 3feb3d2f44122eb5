package kvm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

func (m *memory) calls(rpc string) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, call := range m.called {
		if name, subject, _ := strings.Cut(call, " "); name == rpc {
			all = append(all, subject)
		}
	}
	return all
}

func TestDeleteTakesTheDomainFirstAndTheMarksLast(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	p, req := l.open(t), request("ordered")
	id, err := p.Create(t.Context(), req)
	require.NoError(t, err)
	l.hosts["a"].called = nil
	require.NoError(t, p.Delete(t.Context(), id))
	removing := []string{"DomainDestroyFlags", "DomainUndefineFlags", "StorageVolDelete"}
	var order []string
	for _, call := range l.hosts["a"].called {
		if name, _, _ := strings.Cut(call, " "); slices.Contains(removing, name) {
			order = append(order, name)
		}
	}
	require.Equal(t, []string{
		"DomainDestroyFlags", "DomainUndefineFlags", "StorageVolDelete", "StorageVolDelete", "StorageVolDelete",
	}, order)
	require.True(t, strings.HasSuffix(l.hosts["a"].calls("StorageVolDelete")[2], marksSuffix))
}

func TestUndefineFallsBackToWhatAnOlderLibvirtKnows(t *testing.T) {
	t.Parallel()
	const known = libvirt.DomainUndefineManagedSave | libvirt.DomainUndefineSnapshotsMetadata | libvirt.DomainUndefineNvram
	for name, says := range map[string]func(flags int) string{
		"all at once": func(flags int) string {
			return fmt.Sprintf("unsupported flags (0x%x) in function qemuDomainUndefineFlags", flags&^int(known))
		},
		"one by one": func(flags int) string {
			for _, flag := range []int{int(libvirt.DomainUndefineTpm), int(libvirt.DomainUndefineCheckpointsMetadata)} {
				if flags&flag != 0 {
					return fmt.Sprintf("unsupported flags (0x%x) in function qemuDomainUndefineFlags", flag)
				}
			}
			return ""
		},
	} {
		l := newLab("a")
		h, p, req := l.hosts["a"], l.open(t), request("older")
		id, err := p.Create(t.Context(), req)
		require.NoError(t, err)
		h.answering(func(rpc, subject string) error {
			var domain string
			var flags int
			if rpc != "DomainUndefineFlags" {
				return nil
			}
			_, err := fmt.Sscan(subject, &domain, &flags)
			require.NoError(t, err)
			if flags&^int(known) == 0 {
				return nil
			}
			return libvirt.Error{Code: uint32(libvirt.ErrInvalidArg), Message: says(flags)}
		})
		require.NoError(t, p.Delete(t.Context(), id), name)
		calls := h.calls("DomainUndefineFlags")
		require.Equal(t, fmt.Sprint(req.Name, " ", int(known)), calls[len(calls)-1], name)
		require.Equal(t, fmt.Sprint(req.Name, " ", int(undefineAll)), calls[0], "%s: all that libvirt may keep", name)
		require.Empty(t, l.left(req.UID), name)
	}
}

// An endless loop of refusals would hold a slot for ever.
func TestUndefineGivesUpOnFlagsThatItDidNotGive(t *testing.T) {
	t.Parallel()
	_, older := olderFlags(undefineAll, says(libvirt.ErrInvalidArg, "unsupported flags (0x100000) in function f"))
	require.False(t, older)
	_, older = olderFlags(undefineAll, says(libvirt.ErrOperationInvalid, "unsupported flags (0x20) in function f"))
	require.False(t, older)
}

func TestDeleteLeavesAloneWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	h, p, req := l.hosts["a"], l.open(t), request("theirs")
	id := formatID("a", req.Name)
	h.put(overlayName(req.Name), 1) // nobody's, for it has no marks
	require.NoError(t, p.Delete(t.Context(), id))
	require.NotNil(t, h.volumes[overlayName(req.Name)])

	theirs := req
	theirs.Installation = "elsewhere"
	h.orphan(t, theirs)
	require.NoError(t, p.Delete(t.Context(), id))
	require.NotNil(t, h.volumes[overlayName(req.Name)], "marked by another installation")

	h.squat(t, theirs, func(*marks) {})
	require.ErrorIs(t, p.Delete(t.Context(), id), providers.ErrPermanent)
	require.NotNil(t, h.domains[req.Name])
}

// The pool of the configuration may be another one since.
func TestDeleteKnowsThePoolOfTheCreate(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	req := request("moved")
	id, err := l.open(t).Create(t.Context(), req)
	require.NoError(t, err)
	l.cfg.Hosts[0].Pool = "another"
	require.NoError(t, l.open(t).Delete(t.Context(), id))
	require.Empty(t, l.left(req.UID))
}
