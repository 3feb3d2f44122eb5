package kvmlab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// bridgeCommand is what the key of BridgeUser runs, whatever its owner asks for. -N ends it
// with the connection; without it each one would stay behind.
const bridgeCommand = "nc -N -U /run/libvirt/libvirt-sock"

// makeKeys makes the keys of the clients and the hosts, and the file by which the clients
// know the hosts.
func makeKeys(dir string, hosts []*Host) (Keys, error) {
	in := func(name string) string { return filepath.Join(dir, name) }
	keys := Keys{
		KnownHosts: in("known_hosts"), Root: in("root"), Bridge: in("bridge"), Stranger: in("stranger"),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return keys, err
	}
	var known strings.Builder
	for _, file := range []string{keys.Root, keys.Bridge, keys.Stranger} {
		if err := makeKey(file); err != nil {
			return keys, err
		}
	}
	for _, h := range hosts {
		if err := makeKey(in("host-" + h.Name)); err != nil {
			return keys, err
		}
		public, err := os.ReadFile(in("host-" + h.Name + ".pub"))
		if err != nil {
			return keys, err
		}
		address, _, err := net.SplitHostPort(h.Address)
		if err != nil {
			return keys, err
		}
		known.WriteString(address + " " + string(public))
	}
	return keys, os.WriteFile(keys.KnownHosts, []byte(known.String()), 0o600)
}

func makeKey(file string) error {
	return run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", filepath.Base(file), "-f", file)
}

// sshd configures the host's sshd: keys only, and forwarding to sockets for those whose
// key does not forbid it.
func (h *Host) sshd(keys Keys) error {
	files := map[string]string{
		"sshd_config": fmt.Sprintf(`Port 22
HostKey %s
PidFile %s
AuthorizedKeysFile %s/%%u
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowStreamLocalForwarding yes
MaxStartups 200
MaxSessions 200
`, filepath.Join(filepath.Dir(keys.Root), "host-"+h.Name), h.file("sshd.pid"), h.file("authorized")),
	}
	for user, line := range map[string]struct{ options, key string }{
		"root":     {"", keys.Root},
		BridgeUser: {`restrict,command="` + bridgeCommand + `" `, keys.Bridge},
	} {
		public, err := os.ReadFile(line.key + ".pub")
		if err != nil {
			return err
		}
		files["authorized/"+user] = line.options + string(public)
	}
	return h.write(files)
}
