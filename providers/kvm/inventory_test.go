package kvm

import (
	"errors"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

func create(t *testing.T, p providers.Provider, uid string) string {
	t.Helper()
	id, err := p.Create(t.Context(), request(uid))
	require.NoError(t, err)
	return id
}

func TestOneDomainThatCannotBeReadIsNamedAndTheRestListed(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"an error of libvirt's":    says(libvirt.ErrInternalError, "internal error: monitor"),
		"no answer within a bound": &conn.Error{Host: "a", Stage: conn.StageRPC, Reason: conn.Timeout, Err: errors.New("x")},
	} {
		l := newLab("a")
		p := l.open(t)
		good, bad := create(t, p, "good"), create(t, p, "bad")
		l.answering(func(rpc, subject string) error {
			if rpc == "DomainGetXMLDesc" && subject == providers.NameFromUID("bad") {
				return err
			}
			return nil
		})
		inventory, err := p.Inventory(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, []string{bad}, inventory.Omitted, name)
		require.Len(t, inventory.Instances, 1, name)
		require.Equal(t, good, inventory.Instances[0].ID, name)
		require.Empty(t, inventory.Leftovers, "%s: its volumes are no leftovers", name)
	}
}

func TestAHostThatStopsAnsweringInTheMiddleIsLeftOut(t *testing.T) {
	t.Parallel()
	l := newLab("a", "b")
	p := l.open(t)
	for _, uid := range []string{"1", "2", "3", "4", "5", "6"} {
		create(t, p, uid)
	}
	l.hosts["a"].answering(func(rpc, _ string) error {
		if rpc == "DomainGetXMLDesc" {
			return &conn.Error{Host: "a", Stage: conn.StageRPC, Reason: conn.ConnectionLost, Err: libvirt.ErrInterrupted}
		}
		return nil
	})
	inventory, err := p.Inventory(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{location("a")}, inventory.Omitted)
	for _, i := range inventory.Instances {
		require.Equal(t, "b", hostOf(t, i.ID))
	}
}

func TestADomainThatVanishesWhileItIsListedIsNoError(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	p := l.open(t)
	create(t, p, "gone")
	l.answering(func(rpc, _ string) error {
		if rpc == "DomainGetState" {
			return says(libvirt.ErrNoDomain, "Domain not found")
		}
		return nil
	})
	inventory, err := p.Inventory(t.Context())
	require.NoError(t, err)
	require.Empty(t, inventory.Instances)
	require.Empty(t, inventory.Omitted)
}

func TestVolumesOfACreateThatMayBeUnderWayAreNoLeftovers(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	h, req := l.hosts["a"], request("young")
	h.orphan(t, req)
	p := l.open(t)
	leftovers := func() int {
		inventory, err := p.Inventory(t.Context())
		require.NoError(t, err)
		return len(inventory.Leftovers)
	}
	require.Equal(t, 1, leftovers())
	h.stamp(h.volumes[overlayName(req.Name)], time.Now().Add(-startWindow/2)) // a create came back to it
	require.Zero(t, leftovers())
	h.age(time.Hour)
	require.Equal(t, 1, leftovers())
	theirs := request("theirs")
	theirs.Installation = "elsewhere"
	h.orphan(t, theirs)
	h.put("somebody.qcow2", 1)
	create(t, p, "lives")
	h.age(time.Hour)
	require.Equal(t, 1, leftovers(), "what another installation left, or nobody of us, is not ours to collect")
}

// An outage of the addresses is no outage of the instance; one of the host is.
func TestASourceThatFailsIsNotYetAndAHostThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	l := newLab("a")
	p := l.open(t)
	id := create(t, p, "addressless")
	fail := func(err error) {
		l.answering(func(rpc, _ string) error {
			if rpc == "DomainInterfaceAddresses" {
				return err
			}
			return nil
		})
	}
	for _, err := range []error{
		says(libvirt.ErrInternalError, "internal error: wrong nlmsg len"), libvirt.ErrUnsupported,
		says(libvirt.ErrOperationInvalid, "Requested operation is not valid: domain is not running"),
		says(libvirt.ErrArgumentUnsupported, "argument unsupported: QEMU guest agent is not configured"),
	} {
		fail(err)
		found, err := p.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, providers.StateProvisioning, found.State)
		require.Empty(t, found.IP)
		require.Contains(t, found.Reason, "no address yet (lease: ")
	}
	fail(libvirt.ErrInterrupted)
	_, err := p.Get(t.Context(), id)
	require.ErrorIs(t, err, providers.ErrTransient)
}
