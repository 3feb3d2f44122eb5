//go:build integration && linux

package kvm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/testsuite/kvmlab"
	"github.com/egressfleet/egressfleet/testsuite/kvmlab/image"
)

const (
	soon = 2 * time.Minute // generous: guests run under emulation, and the machine may be busy
	tick = 50 * time.Millisecond
)

// Each host is reached by SSH at its own address, and its libvirtd is no other's.
func TestEachHostHasItsOwnLibvirt(t *testing.T) {
	lab := kvmlab.Current(t)
	require.Len(t, lab.Hosts, 2)
	for _, h := range lab.Hosts {
		out, err := overSSH(t, lab, h, "root", lab.Keys.Root, "hostname")
		require.NoError(t, err, out)
		require.Equal(t, h.Name, strings.TrimSpace(out))
	}
}

// The least that works: a key that reaches libvirt's socket, and nothing else, whatever
// is asked for.
func TestAKeyMayReachLibvirtAlone(t *testing.T) {
	lab := kvmlab.Current(t)
	h := lab.Hosts[0]
	out, err := overSSH(t, lab, h, kvmlab.BridgeUser, lab.Keys.Bridge, "hostname")
	require.NoError(t, err, out)
	require.Equal(t, h.Name, strings.TrimSpace(out))

	out, err = ssh(t, lab, h, lab.Keys.Bridge, kvmlab.BridgeUser, "touch", "/tmp/was-here")
	require.NoError(t, err, out) // libvirt closes what is no RPC
	require.NoFileExists(t, h.Path("/tmp/was-here"))
	require.Eventually(t, func() bool { // a bridge ends with its connection
		_, err := h.Run(t.Context(), nil, "pgrep", "-x", "nc")
		return err != nil
	}, soon, tick)
	out, err = ssh(t, lab, h, lab.Keys.Bridge, kvmlab.BridgeUser, "-W", "127.0.0.1:22")
	require.Error(t, err)
	require.Contains(t, out, "administratively prohibited")
	out, err = ssh(t, lab, h, lab.Keys.Stranger, "root", "true")
	require.Error(t, err)
	require.Contains(t, out, "Permission denied")
}

// A tiny guest gets an address in its host's network, is reached there, and goes on while
// its host is cut off.
func TestAGuestOutlivesACutOffHost(t *testing.T) {
	lab := kvmlab.Current(t)
	h, other := lab.Hosts[0], lab.Hosts[1]
	ip := startTiny(t, h)
	_, guests, err := net.ParseCIDR(h.Guests)
	require.NoError(t, err)
	require.True(t, guests.Contains(net.ParseIP(ip)), ip)

	require.NoError(t, h.Cut())
	require.False(t, open(h.Address))
	require.True(t, open(other.Address))
	require.NoError(t, h.Heal())
	require.Eventually(t, func() bool { return open(h.Address) }, soon, tick)
	state, err := h.Virsh(t.Context(), "domstate", "tiny")
	require.NoError(t, err)
	require.Equal(t, "running", strings.TrimSpace(state))
}

// startTiny runs a guest past every provider, and returns the address of its lease.
func startTiny(t *testing.T, h *kvmlab.Host) (ip string) {
	t.Helper()
	disk := h.Path("/var/lib/libvirt/images/tiny.qcow2")
	content, err := os.ReadFile(cached(t, image.Tiny()))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(disk, content, 0o644))
	xml := fmt.Sprintf(`<domain type='qemu'><name>tiny</name><memory unit='MiB'>32</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type></os><features><acpi/></features><devices>
<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/var/lib/libvirt/images/tiny.qcow2'/>
<target dev='vda' bus='virtio'/></disk>
<interface type='network'><source network='%s'/><model type='virtio'/></interface></devices></domain>`, kvmlab.Network)
	_, err = h.Run(t.Context(), strings.NewReader(xml), "virsh", "-c", "qemu:///system", "create", "/dev/stdin")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := h.Virsh(context.WithoutCancel(t.Context()), "destroy", "tiny")
		require.NoError(t, err)
		require.NoError(t, os.Remove(disk))
	})
	begun := time.Now()
	require.Eventually(t, func() bool {
		out, err := h.Virsh(t.Context(), "domifaddr", "tiny")
		fields := strings.Fields(out)
		if err != nil || len(fields) < 4 {
			return false
		}
		ip, _, _ = strings.Cut(fields[3], "/")
		return true
	}, soon, tick)
	t.Logf("it has %s after %s", ip, time.Since(begun).Round(time.Millisecond))
	return ip
}

func open(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// cached is the path of an image, which is made before the tests.
func cached(t *testing.T, i image.Image) string {
	t.Helper()
	cache, err := image.Cache()
	require.NoError(t, err)
	path, err := i.Find(cache)
	require.NoError(t, err)
	return path
}

// overSSH asks a host's libvirt as a client from elsewhere does.
func overSSH(t *testing.T, lab *kvmlab.Lab, h *kvmlab.Host, user, key string, args ...string) (string, error) {
	t.Helper()
	host, _, err := net.SplitHostPort(h.Address)
	require.NoError(t, err)
	uri := fmt.Sprintf("qemu+ssh://%s@%s/system?keyfile=%s&known_hosts=%s&no_tty=1&proxy=netcat",
		user, host, key, lab.Keys.KnownHosts)
	script := fmt.Sprintf(`exec ssh -o UserKnownHostsFile=%s "$@"`, lab.Keys.KnownHosts)
	command := t.TempDir() + "/ssh"
	require.NoError(t, os.WriteFile(command, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	out, err := exec.CommandContext(t.Context(), "virsh",
		append([]string{"-q", "-c", uri + "&command=" + command}, args...)...).CombinedOutput()
	return string(out), err
}

func ssh(t *testing.T, lab *kvmlab.Lab, h *kvmlab.Host, key, user string, args ...string) (string, error) {
	t.Helper()
	host, _, err := net.SplitHostPort(h.Address)
	require.NoError(t, err)
	options := []string{
		"-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile=" + lab.Keys.KnownHosts, "-i", key,
		"-l", user,
	}
	var rest []string
	if strings.HasPrefix(args[0], "-") {
		rest = append(append(options, args...), host)
	} else {
		rest = append(append(options, host), args...)
	}
	cmd := exec.CommandContext(t.Context(), "ssh", rest...)
	cmd.Stdin = strings.NewReader("")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
