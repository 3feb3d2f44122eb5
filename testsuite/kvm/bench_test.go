//go:build integration && linux

package kvm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers"
	"github.com/egressfleet/egressfleet/providers/kvm"
	base "github.com/egressfleet/egressfleet/providers/kvm/image"
	"github.com/egressfleet/egressfleet/testsuite/kvmlab"
	"github.com/egressfleet/egressfleet/testsuite/kvmlab/image"
)

const (
	installation = "lab"
	providerName = "hypervisors"
	tiny         = "tiny" // image and machine type
	debian       = "debian"
)

// bench is a provider with keys of its own, over the hosts of the run.
type bench struct {
	*kvmlab.Lab
	cfg  kvm.Config
	keys map[string]string // file of the private key by user
}

// benches finds the bench of a provider that the suite was given.
type benches struct {
	t   *testing.T // of the whole suite
	all sync.Map
}

func (m *benches) of(t *testing.T, p providers.Provider) *bench {
	t.Helper()
	b, ok := m.all.Load(p)
	require.True(t, ok)
	return b.(*bench)
}

func (m *benches) open(t *testing.T) providers.Provider {
	t.Helper()
	b := newBench(t)
	p := b.open(t, installation)
	m.all.Store(p, b)
	return p
}

// another is a second provider over a bench. It outlives the row, whose cleaning up may
// be by it.
func (m *benches) another(t *testing.T, b *bench, installation string) providers.Provider {
	t.Helper()
	p, err := kvm.New(t.Context(), providerName, installation, b.cfg)
	require.NoError(t, err)
	m.t.Cleanup(func() { require.NoError(m.t, p.Close()) })
	return p
}

// newBench reaches one host as root, by forwarding, and the other one by the key that
// allows nothing but libvirt's socket.
func newBench(t *testing.T) *bench {
	t.Helper()
	lab := kvmlab.Current(t)
	b := &bench{Lab: lab, keys: map[string]string{}}
	for user, key := range map[string]string{"root": lab.Keys.Root, kvmlab.BridgeUser: lab.Keys.Bridge} {
		content, err := os.ReadFile(key)
		require.NoError(t, err)
		b.keys[user] = filepath.Join(t.TempDir(), user)
		require.NoError(t, os.WriteFile(b.keys[user], content, 0o600))
	}
	b.cfg = b.config(t)
	return b
}

func (b *bench) config(t *testing.T) kvm.Config {
	t.Helper()
	cfg := kvm.Config{
		DomainType: "qemu",
		Images:     map[string]kvm.ImageConfig{tiny: imageOf(t, image.Tiny()), debian: imageOf(t, image.Debian())},
		MachineTypes: map[string]kvm.MachineTypeConfig{
			tiny: {Memory: "32Mi"}, debian: {Memory: "512Mi"},
		},
		Reserve: kvm.ReserveConfig{Memory: "64Mi", Pool: "64Mi"},
	}
	for i, h := range b.Hosts {
		user, transport := "root", "forward"
		if i%2 == 1 {
			user, transport = kvmlab.BridgeUser, "command"
		}
		cfg.Hosts = append(cfg.Hosts, kvm.HostConfig{
			Name: h.Name, Address: h.Address, User: user, Transport: transport, KeyFile: b.keys[user],
			KnownHostsFile: b.Keys.KnownHosts, Pool: kvmlab.Pool, Network: kvmlab.Network, AddressRange: h.Guests,
			Region: "lab",
		})
	}
	return cfg
}

func imageOf(t *testing.T, i image.Image) kvm.ImageConfig {
	t.Helper()
	file := cached(t, i)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	return kvm.ImageConfig{File: file, SHA256: hex.EncodeToString(sum[:]), Format: "qcow2"}
}

// open returns a provider over the hosts, which have the tiny image.
func (b *bench) open(t *testing.T, installation string) providers.Provider {
	t.Helper()
	p, err := kvm.New(t.Context(), providerName, installation, b.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	b.bring(t, p)
	return p
}

// bring prepares all hosts for the tiny image, as an activity would.
func (b *bench) bring(t *testing.T, p providers.Provider) {
	t.Helper()
	preparer, ok := providers.As[providers.Preparer](p)
	require.True(t, ok)
	for _, h := range b.Hosts {
		req := request("bring")
		req.Placement.Zone = h.Name
		require.NoError(t, preparer.Prepare(context.WithoutCancel(t.Context()), req))
	}
}

// volumes are those of the images, which stay, and what says that they are whole.
func (b *bench) volumes() (names []string) {
	for key, i := range b.cfg.Images {
		whole := base.Entry{Name: key, SHA256: i.SHA256, Format: i.Format}.Volume()
		names = append(names, whole, whole+".complete")
	}
	return names
}

// each does something on all hosts, and returns what undoes it.
func (b *bench) each(do func(*kvmlab.Host) (undo func())) (undo func()) {
	var all []func()
	for _, h := range b.Hosts {
		all = append(all, do(h))
	}
	return sync.OnceFunc(func() {
		for _, undo := range all {
			undo()
		}
	})
}

// on runs a command on a host; it must work.
func on(t *testing.T, h *kvmlab.Host, command ...string) string {
	t.Helper()
	out, err := h.Run(context.WithoutCancel(t.Context()), nil, command...)
	require.NoError(t, err)
	return out
}
