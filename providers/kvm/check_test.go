package kvm

import (
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

func TestACheckTellsEachHostByItself(t *testing.T) {
	t.Parallel()
	l := newLab("a", "b")
	l.hosts["a"].fail(conn.StageHostKey, conn.HostKeyMismatch)
	all := l.open(t).Check(t.Context())
	require.Len(t, all, 2)
	require.Equal(t, "a", all[0].Target)
	require.Equal(t, "HostKeyMismatch", all[0].Reason)
	require.Contains(t, all[0].Message, "hostkey", "the stage")
	require.Equal(t, providers.TargetStatus{
		Target: "b", Ready: true, Reason: providers.ReasonReachable, Details: map[string]string{
			"libvirt": "9.0.0", "hypervisor": "7.2.22", "memoryAvailableMiB": "65536", "memoryTotalMiB": "65536",
			"poolFreeMiB": "51200", "poolTotalMiB": "102400",
		},
	}, all[1])
}

func TestReasonsOfACheck(t *testing.T) {
	t.Parallel()
	answers := func(rpc string, err error) func(*fakeLink) {
		return func(h *fakeLink) {
			h.answering(func(called, _ string) error {
				if called == rpc {
					return err
				}
				return nil
			})
		}
	}
	for want, c := range map[string]struct {
		spoil func(*fakeLink)
		says  string
	}{
		"Unreachable":        {func(h *fakeLink) { h.fail(conn.StageDial, conn.Unreachable) }, "dial"},
		"SSHHandshakeFailed": {func(h *fakeLink) { h.fail(conn.StageHandshake, conn.SSHHandshakeFailed) }, "handshake"},
		"LibvirtUnreachable": {func(h *fakeLink) { h.fail(conn.StageForward, conn.LibvirtUnreachable) }, "forward"},
		"Unauthorized":       {func(h *fakeLink) { h.fail(conn.StageAuth, conn.Unauthorized) }, "auth"},
		"Timeout":            {func(h *fakeLink) { h.fail(conn.StageLibvirt, conn.Canceled) }, "libvirt"},
		"PoolNotFound":       {func(h *fakeLink) { h.pool = "another" }, "'default'"},
		"NetworkNotFound":    {func(h *fakeLink) { h.network = "another" }, "'default'"},
		"PoolFull":           {func(h *fakeLink) { h.poolFree = 1 }, "0 MiB free"},
		"MemoryFull":         {func(h *fakeLink) { h.memoryFree = 1 << 29 }, "512 MiB of memory"},
		"Forbidden":          {answers("DomainSetMetadata", says(libvirt.ErrAccessDenied, "access denied")), "access denied"},
		"ReadOnly": {
			answers("DomainSetMetadata", says(libvirt.ErrOperationDenied, "read only access prevents it")), "readers only",
		},
		"APIError": {answers("NetworkIsActive", says(libvirt.ErrInternalError, "odd")), "odd"},
		"DomainTypeUnsupported": {
			answers("ConnectGetDomainCapabilities", says(libvirt.ErrInvalidArg, "KVM is not supported on this host")), `"kvm"`,
		},
	} {
		l := newLab("a")
		c.spoil(l.hosts["a"])
		status := l.open(t).Check(t.Context())[0]
		require.False(t, status.Ready, want)
		require.Equal(t, want, status.Reason, status.Message)
		require.Contains(t, status.Message, c.says, want)
	}
}

func TestAFullHostStillTellsHowFullItIs(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	l.hosts["a"].exhaust()
	status := l.open(t).Check(t.Context())[0]
	require.Equal(t, "0", status.Details["memoryAvailableMiB"])
	require.Equal(t, "9.0.0", status.Details["libvirt"])
}

// A driver that cannot tell its memory tells what is free.
func TestAnOlderDriverTellsFreeMemory(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	l.hosts["a"].answering(func(rpc, _ string) error {
		if rpc == "NodeGetMemoryStats" || rpc == "ConnectGetDomainCapabilities" {
			return says(libvirt.ErrNoSupport, "this function is not supported by the connection driver")
		}
		return nil
	})
	status := l.open(t).Check(t.Context())[0]
	require.True(t, status.Ready, status.Message)
	require.Equal(t, "65536", status.Details["memoryAvailableMiB"])
}
