//go:build integration && linux

package kvm

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kdomanski/iso9660"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm"
	"github.com/egressfleet/egressfleet/testsuite/kvmlab"
	"github.com/egressfleet/egressfleet/testsuite/providertest"
)

const mostCloudInit = 4 << 20 // bytes; docs/providers/kvm.md

// hooks are what somebody does to real hosts. What only a libvirt in memory can do is left
// to the provider's own tests.
func (m *benches) hooks() providertest.Lab {
	lab := m.trouble()
	lab.MaxCloudInit = mostCloudInit
	lab.Reopen = func(t *testing.T, p providers.Provider) providers.Provider {
		return m.another(t, m.of(t, p), installation)
	}
	lab.Neighbour = func(t *testing.T, p providers.Provider, installation string) providers.Provider {
		return m.another(t, m.of(t, p), installation)
	}
	lab.Plant = func(t *testing.T, p providers.Provider) []string { return m.of(t, p).plant(t) }
	lab.Squat = func(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
		m.of(t, p).squat(t, p, req, missing)
	}
	lab.Orphan = func(t *testing.T, p providers.Provider, req providers.CreateRequest) {
		m.of(t, p).orphan(t, req)
	}
	lab.Leftovers = func(t *testing.T, p providers.Provider, uid string) []string {
		return m.of(t, p).left(t, providers.NameFromUID(uid))
	}
	lab.Delivered = func(t *testing.T, p providers.Provider, id string) []byte {
		h, name := m.of(t, p).at(t, id)
		return userData(t, h.Path(kvmlab.PoolPath+"/"+name+"-seed.iso"))
	}
	lab.Unprepare = func(t *testing.T, p providers.Provider) func() { return m.of(t, p).forget(t, p) }
	lab.PowerOff = func(t *testing.T, p providers.Provider, id string) {
		h, name := m.of(t, p).at(t, id)
		on(t, h, "virsh", "destroy", name)
	}
	return lab
}

// trouble is what befalls hosts.
func (m *benches) trouble() providertest.Lab {
	both := func(do func(*testing.T, *kvmlab.Host) func()) func(*testing.T, providers.Provider) func() {
		return func(t *testing.T, p providers.Provider) func() {
			return m.of(t, p).each(func(h *kvmlab.Host) func() { return do(t, h) })
		}
	}
	return providertest.Lab{
		Break: both(cut), Stall: both(freeze), Exhaust: both(fill), Silence: both(mute), HalfWay: both(unplug),
		Refuse: both(lockOut),
		Part: &providertest.Part{
			Name:  "hosts/kvm2",
			Place: func(req *providers.CreateRequest) { req.Placement.Zone = "kvm2" },
			Cut: func(t *testing.T, p providers.Provider) func() {
				return cut(t, m.of(t, p).Hosts[1])
			},
		},
		Mount: func(t *testing.T, p providers.Provider, c providertest.Credential) { m.of(t, p).mount(t, c) },
	}
}

func cut(t *testing.T, h *kvmlab.Host) (heal func()) {
	t.Helper()
	require.NoError(t, h.Cut())
	return sync.OnceFunc(func() { require.NoError(t, h.Heal()) })
}

// freeze lets libvirtd take connections and answer none.
func freeze(t *testing.T, h *kvmlab.Host) (release func()) {
	t.Helper()
	on(t, h, "pkill", "-STOP", "-x", "libvirtd")
	return func() { on(t, h, "pkill", "-CONT", "-x", "libvirtd") }
}

// fill leaves no room in the pool.
func fill(t *testing.T, h *kvmlab.Host) (restore func()) {
	t.Helper()
	require.NoError(t, h.FillPool())
	return func() { require.NoError(t, h.EmptyPool()) }
}

// mute keeps guests from getting an address.
func mute(t *testing.T, h *kvmlab.Host) (restore func()) {
	t.Helper()
	rule := []string{"INPUT", "-i", "virbr0", "-p", "udp", "--dport", "67", "-j", "DROP"}
	on(t, h, append([]string{"iptables", "-I"}, rule...)...)
	return func() { on(t, h, append([]string{"iptables", "-D"}, rule...)...) }
}

// unplug takes away the network, so that no guest can start: its volumes and its domain are
// made by then. What they have left is old when the network is back.
func unplug(t *testing.T, h *kvmlab.Host) (heal func()) {
	t.Helper()
	on(t, h, "virsh", "net-destroy", kvmlab.Network)
	return func() {
		on(t, h, "virsh", "net-start", kvmlab.Network)
		on(t, h, "find", kvmlab.PoolPath, "-type", "f", "!", "-name", "image-*",
			"-exec", "touch", "-d", "1 hour ago", "{}", "+")
		on(t, h, "virsh", "pool-refresh", kvmlab.Pool)
	}
}

// lockOut lets sshd know no key, and ends the connections that are there.
func lockOut(t *testing.T, h *kvmlab.Host) (restore func()) {
	t.Helper()
	var undo []func()
	for _, user := range []string{"root", kvmlab.BridgeUser} {
		file := h.AuthorizedKeys(user)
		had, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, nil, 0o644))
		undo = append(undo, func() { require.NoError(t, os.WriteFile(file, had, 0o644)) })
	}
	require.NoError(t, h.HangUp())
	return func() {
		for _, undo := range undo {
			undo()
		}
	}
}

// mount changes the private keys that the provider reads.
func (b *bench) mount(t *testing.T, c providertest.Credential) {
	t.Helper()
	for user, key := range b.keys {
		require.NoError(t, os.RemoveAll(key)) // it may be missing by now
		switch c {
		case providertest.CredentialMissing:
		case providertest.CredentialUnreadable:
			require.NoError(t, os.WriteFile(key, []byte("no key"), 0o600))
		case providertest.CredentialRotated:
			require.NoError(t, exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
			public, err := os.ReadFile(key + ".pub")
			require.NoError(t, err)
			for _, h := range b.Hosts {
				b.authorize(t, h, user, string(public))
			}
		}
	}
	for _, h := range b.Hosts {
		require.NoError(t, h.HangUp())
	}
}

// authorize lets a host take another key in the place of a user's, until the test ends.
func (b *bench) authorize(t *testing.T, h *kvmlab.Host, user, public string) {
	t.Helper()
	file := h.AuthorizedKeys(user)
	had, err := os.ReadFile(file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.WriteFile(file, had, 0o644)) })
	options, _, _ := strings.Cut(string(had), "ssh-ed25519")
	require.NoError(t, os.WriteFile(file, []byte(options+public), 0o644))
}

// at returns the host and the name of an ID.
func (b *bench) at(t *testing.T, id string) (*kvmlab.Host, string) {
	t.Helper()
	parts := strings.Split(id, "/")
	require.Len(t, parts, 4, id)
	for _, h := range b.Hosts {
		if h.Name == parts[1] {
			return h, parts[3]
		}
	}
	require.Fail(t, "no such host", id)
	return nil, ""
}

// left names the domains and volumes of a name.
func (b *bench) left(t *testing.T, name string) (all []string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, h := range b.Hosts {
		domains, err := h.Domains(ctx)
		require.NoError(t, err)
		volumes, err := h.Volumes(ctx)
		require.NoError(t, err)
		for _, found := range append(domains, volumes...) {
			if strings.HasPrefix(found, name) {
				all = append(all, h.Name+": "+found)
			}
		}
	}
	return all
}

// remove takes away what a test put somewhere itself.
func (b *bench) remove(t *testing.T, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, h := range b.Hosts {
		_, _ = h.Virsh(ctx, "destroy", name) // it may be off, or not there
		_, _ = h.Virsh(ctx, "undefine", name)
		volumes, err := h.Volumes(ctx)
		require.NoError(t, err)
		for _, v := range volumes {
			if strings.HasPrefix(v, name) {
				on(t, h, "virsh", "vol-delete", v, kvmlab.Pool)
			}
		}
	}
}

// forget takes the images off the hosts.
func (b *bench) forget(t *testing.T, p providers.Provider) (restore func()) {
	t.Helper()
	for _, h := range b.Hosts {
		volumes, err := h.Volumes(t.Context())
		require.NoError(t, err)
		for _, v := range volumes {
			if slices.Contains(b.volumes(), v) {
				on(t, h, "virsh", "vol-delete", v, kvmlab.Pool)
			}
		}
	}
	return func() { b.bring(t, p) }
}

// plant puts a domain without marks, and one of another installation, on the first host.
func (b *bench) plant(t *testing.T) []string {
	t.Helper()
	const bare = "planted-bare"
	h := b.Hosts[0]
	xml := "<domain type='qemu'><name>" + bare + "</name><memory unit='MiB'>32</memory><os><type>hvm</type></os></domain>"
	_, err := h.Run(t.Context(), strings.NewReader(xml), "virsh", "define", "/dev/stdin")
	require.NoError(t, err)
	t.Cleanup(func() { b.remove(t, bare) })
	foreign, err := kvm.New(t.Context(), providerName, "elsewhere", b.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, foreign.Close()) })
	req := request("planted-foreign")
	req.Installation = "elsewhere"
	id, err := foreign.Create(t.Context(), req)
	require.NoError(t, err)
	t.Cleanup(func() { b.remove(t, req.Name) })
	return []string{"hosts/" + h.Name + "/domains/" + bare, id}
}

func request(uid string) providers.CreateRequest {
	return providers.CreateRequest{
		Name: providers.NameFromUID(uid), UID: uid, Attempt: 1, Installation: installation, Owner: "default/" + uid,
		SpecMark: `{"port":3128}`, Port: 3128,
		Placement: providers.Placement{Zone: "kvm1", MachineType: tiny, Image: tiny},
	}
}

// squat makes the instance of a request and takes a mark off its domain.
func (b *bench) squat(t *testing.T, p providers.Provider, req providers.CreateRequest, missing string) {
	t.Helper()
	_, err := p.Create(t.Context(), req)
	require.NoError(t, err)
	t.Cleanup(func() { b.remove(t, req.Name) })
	h := b.Hosts[0]
	on(t, h, "virsh", "destroy", req.Name)
	xml := on(t, h, "virsh", "dumpxml", "--inactive", req.Name)
	stripped := regexp.MustCompile(" "+missing+`=("[^"]*"|'[^']*')`).ReplaceAllString(xml, "")
	require.NotEqual(t, xml, stripped, "the domain has the mark %s", missing)
	_, err = h.Run(t.Context(), strings.NewReader(stripped), "virsh", "define", "/dev/stdin")
	require.NoError(t, err)
}

// orphan makes the volumes that a create makes first, an hour ago.
func (b *bench) orphan(t *testing.T, req providers.CreateRequest) {
	t.Helper()
	h := b.Hosts[0]
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "=") }
	marks := fmt.Sprintf("%s,%s,%s,%s.m", req.Name, escape(req.UID), escape(req.Installation), escape(req.Owner))
	long := time.Now().Add(-time.Hour)
	for _, v := range []struct{ name, format string }{{marks, "raw"}, {req.Name + ".qcow2", "qcow2"}} {
		on(t, h, "virsh", "vol-create-as", kvmlab.Pool, v.name, "0", "--format", v.format)
		require.NoError(t, os.Chtimes(h.Path(filepath.Join(kvmlab.PoolPath, v.name)), long, long))
	}
	on(t, h, "virsh", "pool-refresh", kvmlab.Pool)
	t.Cleanup(func() { b.remove(t, req.Name) })
}

// userData reads the user-data out of a seed, as a guest would.
func userData(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	iso, err := iso9660.OpenImage(f)
	require.NoError(t, err)
	root, err := iso.RootDir()
	require.NoError(t, err)
	files, err := root.GetChildren()
	require.NoError(t, err)
	for _, f := range files {
		if strings.EqualFold(strings.TrimSuffix(f.Name(), "."), "user-data") {
			data, err := io.ReadAll(f.Reader())
			require.NoError(t, err)
			return data
		}
	}
	require.Fail(t, "the seed has no user-data")
	return nil
}
