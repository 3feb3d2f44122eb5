package kvm

import (
	"net/netip"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
)

// captured are states and addresses that a libvirt was seen to report.
type captured struct {
	States []struct {
		Name          string
		State, Reason int32
		Address, Want string
	}
	Addresses []struct {
		Name, Want        string
		Lease, Agent, ARP seenAddresses
	}
}

type seenAddresses struct {
	Code       uint32
	Message    string
	Interfaces []struct {
		MAC       string
		Addresses []string
	}
}

const guestMAC = "52:54:00:aa:bb:cc"

// asked is a libvirt that only knows addresses.
type asked struct {
	domainAPI
	answers map[libvirt.DomainInterfaceAddressesSource]seenAddresses
}

func (a asked) DomainInterfaceAddresses(_ libvirt.Domain, source, _ uint32) (all []libvirt.DomainInterface, err error) {
	said := a.answers[libvirt.DomainInterfaceAddressesSource(source)]
	if said.Code != 0 {
		return nil, libvirt.Error{Code: said.Code, Message: said.Message}
	}
	for _, i := range said.Interfaces {
		one := libvirt.DomainInterface{}
		if i.MAC != "" {
			one.Hwaddr = libvirt.OptString{i.MAC}
		}
		for _, addr := range i.Addresses {
			one.Addrs = append(one.Addrs, libvirt.DomainIPAddr{Addr: addr})
		}
		all = append(all, one)
	}
	return all, nil
}

func from(macAndAddresses ...string) (s seenAddresses) {
	s.Interfaces = append(s.Interfaces, struct {
		MAC       string
		Addresses []string
	}{macAndAddresses[0], macAndAddresses[1:]})
	return s
}

func search(t *testing.T, allowed string, a asked) found {
	t.Helper()
	f := finder{nics: []nic{{guestMAC, defaultNetwork}}}
	if allowed != "" {
		f.allowed = netip.MustParsePrefix(allowed)
	}
	at, err := f.find(a, libvirt.Domain{}, func(have []netip.Addr) []netip.Addr { return have })
	require.NoError(t, err)
	return at
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func TestCapturedAddresses(t *testing.T) {
	t.Parallel()
	var seen captured
	load(t, "domains.json", &seen)
	for _, c := range seen.Addresses {
		at := search(t, "", asked{answers: map[libvirt.DomainInterfaceAddressesSource]seenAddresses{
			libvirt.DomainInterfaceAddressesSrcLease: c.Lease,
			libvirt.DomainInterfaceAddressesSrcAgent: c.Agent,
			libvirt.DomainInterfaceAddressesSrcArp:   c.ARP,
		}})
		require.Equal(t, c.Want, text(at.addr), c.Name)
		require.Equal(t, c.Want == "", at.why != "", "%s: why there is none", c.Name)
	}
}

func TestWhichAddressIsTaken(t *testing.T) {
	t.Parallel()
	const lease, agent, arp = libvirt.DomainInterfaceAddressesSrcLease, libvirt.DomainInterfaceAddressesSrcAgent,
		libvirt.DomainInterfaceAddressesSrcArp
	type answers = map[libvirt.DomainInterfaceAddressesSource]seenAddresses
	for name, c := range map[string]struct {
		answers answers
		allowed string
		want    string
	}{
		"a lease before all others": {
			answers{lease: from(guestMAC, "192.0.2.7"), agent: from(guestMAC, "192.0.2.8")}, "", "192.0.2.7",
		},
		"the agent before the neighbours": {
			answers{agent: from(guestMAC, "192.0.2.8"), arp: from(guestMAC, "192.0.2.9")}, "", "192.0.2.8",
		},
		"a neighbour, where nothing else is": {answers{arp: from("52:54:00:AA:BB:CC", "192.0.2.9")}, "", "192.0.2.9"},
		"of two leases the one the guest has": {
			answers{lease: from(guestMAC, "192.0.2.6", "192.0.2.7"), agent: from(guestMAC, "192.0.2.7")}, "", "192.0.2.7",
		},
		"of two of each the one that both have": {
			answers{lease: from(guestMAC, "192.0.2.6", "192.0.2.7"), agent: from(guestMAC, "192.0.2.8", "192.0.2.7")},
			"",
			"192.0.2.7",
		},
		"of two, where nobody else knows, one": {answers{arp: from(guestMAC, "192.0.2.6", "192.0.2.7")}, "", "192.0.2.6"},
		"not that of another card": {
			answers{agent: from("02:42:ac:11:00:02", "172.17.0.1"), arp: from(guestMAC, "192.0.2.9")}, "", "192.0.2.9",
		},
		"not that of an earlier life":          {answers{lease: from("52:54:00:00:00:01", "192.0.2.7")}, "", ""},
		"not one of a card without a MAC":      {answers{agent: from("", "192.0.2.7")}, "", ""},
		"not loopback":                         {answers{agent: from(guestMAC, "127.0.0.1")}, "", ""},
		"not link-local":                       {answers{agent: from(guestMAC, "169.254.7.7", "fe80::1")}, "", ""},
		"not the unspecified one":              {answers{agent: from(guestMAC, "0.0.0.0")}, "", ""},
		"not multicast":                        {answers{agent: from(guestMAC, "224.0.0.1")}, "", ""},
		"not IPv6, which is there before DHCP": {answers{agent: from(guestMAC, "2001:db8::7")}, "", ""},
		"not what is no address":               {answers{agent: from(guestMAC, "dhcp", "")}, "", ""},
		"not one of another network": {
			answers{agent: from(guestMAC, "198.51.100.7", "192.0.2.7")}, "192.0.2.0/24", "192.0.2.7",
		},
	} {
		require.Equal(t, c.want, text(search(t, c.allowed, asked{answers: c.answers}).addr), name)
	}
}

func TestTheLeaseThatEndsLastIsTaken(t *testing.T) {
	t.Parallel()
	old, now := netip.MustParseAddr("192.0.2.6"), netip.MustParseAddr("192.0.2.7")
	leases := []libvirt.NetworkDhcpLease{
		{Ipaddr: old.String(), Expirytime: 100},
		{Ipaddr: now.String(), Expirytime: 200},
		{Ipaddr: "192.0.2.99", Expirytime: 300}, // of another card
	}
	require.Equal(t, []netip.Addr{now}, newestLease(leases, []netip.Addr{old, now}))
	require.Equal(t, []netip.Addr{old, now}, newestLease(nil, []netip.Addr{old, now}), "nobody knows")
}

func TestStates(t *testing.T) {
	t.Parallel()
	var seen captured
	load(t, "domains.json", &seen)
	now := time.Now()
	young := marks{Phase: phaseStarting, StartingAt: now.Add(-20 * time.Second).Format(time.RFC3339Nano)}
	for _, c := range seen.States {
		v := condition{c.State, c.Reason, young, now}.judge()
		state := v.state
		if v.runs && c.Address == "" {
			state = providers.StateProvisioning // as observed says it
		}
		require.Equal(t, providers.State(c.Want), state, c.Name)
		require.Equal(t, v.state == providers.StateRunning, v.reason == "", "%s: a reason for what is wrong", c.Name)
	}
}

func TestOnlyTheMarkerTellsNeverStartedFromStopped(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339Nano) }
	off := func(m marks) verdict {
		return condition{int32(libvirt.DomainShutoff), int32(libvirt.DomainShutoffUnknown), m, now}.judge()
	}
	require.Equal(t, providers.StateProvisioning, off(marks{Phase: phaseStarting, CreatedAt: at(time.Second)}).state)
	require.Equal(t, providers.StateProvisioning, off(marks{
		Phase: phaseStarting, CreatedAt: at(time.Hour), StartingAt: at(time.Second),
	}).state, "a create that came back")
	require.Equal(t, providers.StateStopped, off(marks{Phase: phaseStarting, CreatedAt: at(startWindow)}).state)
	require.Equal(t, providers.StateStopped, off(marks{Phase: phaseStarted, CreatedAt: at(time.Second)}).state)
	require.Equal(t, providers.StateStopped, off(marks{}).state, "somebody else's")
}

func TestReasonsAreVisible(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		state  libvirt.DomainState
		reason int32
		want   providers.State
	}{
		"full":                 {libvirt.DomainPaused, int32(libvirt.DomainPausedIoerror), providers.StateStopped},
		"being started":        {libvirt.DomainPaused, int32(libvirt.DomainPausedStartingUp), providers.StateProvisioning},
		"libvirt works on it":  {libvirt.DomainPaused, int32(libvirt.DomainPausedMigration), providers.StateProvisioning},
		"QEMU process":         {libvirt.DomainShutoff, int32(libvirt.DomainShutoffCrashed), providers.StateStopped},
		"start has failed":     {libvirt.DomainShutoff, int32(libvirt.DomainShutoffFailed), providers.StateStopped},
		"saved":                {libvirt.DomainShutoff, int32(libvirt.DomainShutoffSaved), providers.StateStopped},
		"crashed":              {libvirt.DomainCrashed, int32(libvirt.DomainCrashedPanicked), providers.StateStopped},
		"suspended":            {libvirt.DomainPmsuspended, 1, providers.StateStopped},
		"state 5, reason 99":   {libvirt.DomainShutoff, 99, providers.StateStopped},
		"state 3, reason 99":   {libvirt.DomainPaused, 99, providers.StateStopped},
		"state 42, reason 7":   {42, 7, providers.StateStopped},
		"knows no state yet":   {libvirt.DomainNostate, 0, providers.StateProvisioning},
		"guest is shutting":    {libvirt.DomainShutdown, 1, providers.StateStopped},
		"by an administrator":  {libvirt.DomainPaused, int32(libvirt.DomainPausedUser), providers.StateStopped},
		"migrated to another":  {libvirt.DomainShutoff, int32(libvirt.DomainShutoffMigrated), providers.StateStopped},
		"libvirt lost it when": {libvirt.DomainShutoff, int32(libvirt.DomainShutoffDaemon), providers.StateStopped},
	} {
		v := condition{int32(c.state), c.reason, marks{Phase: phaseStarted}, time.Now()}.judge()
		require.Equal(t, c.want, v.state, reason)
		require.Contains(t, v.reason, reason)
	}
}
