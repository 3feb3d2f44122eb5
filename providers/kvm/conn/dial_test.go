package conn_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

func version(l *libvirt.Libvirt) error {
	_, err := l.ConnectGetLibVersion()
	return err
}

func failure(t *testing.T, err error) *conn.Error {
	t.Helper()
	failed, ok := errors.AsType[*conn.Error](err)
	require.True(t, ok, "%v (%T) is an error of the link", err, err)
	require.Equal(t, "h1", failed.Host)
	return failed
}

// TestDialFailures is what becomes of every kind of host that cannot be used.
func TestDialFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults    faults
		prepare   func(*sshd)
		bridge    conn.Bridge
		stage     conn.Stage
		reason    conn.Reason
		permanent bool
		says      string
	}{
		"nobody takes the connection": {
			faults: faults{refuse: true}, stage: conn.StageDial, reason: conn.Unreachable, says: "connection refused",
		},
		"it is taken, and nothing is said": {
			faults: faults{silent: true}, stage: conn.StageHandshake, reason: conn.Timeout, says: "deadline",
		},
		"the handshake hangs": {
			faults: faults{hangsInHandshake: true}, stage: conn.StageHandshake, reason: conn.Timeout, says: "deadline",
		},
		"something else than SSH": {
			faults: faults{speaks: "HTTP/1.1 400 Bad Request\r\n\r\n"}, stage: conn.StageHandshake,
			reason: conn.SSHHandshakeFailed, says: "handshake failed",
		},
		"the key is refused": {
			faults: faults{refusesKeys: true}, stage: conn.StageAuth, reason: conn.Unauthorized, permanent: true,
			says: "authorized_keys of fleet",
		},
		"it hangs while it looks at the key": {
			faults: faults{hangsInAuth: true}, stage: conn.StageAuth, reason: conn.Timeout, says: "deadline",
		},
		"it is cut off while it looks at the key": {
			faults: faults{cutsOffInAuth: true}, stage: conn.StageAuth, reason: conn.SSHHandshakeFailed, says: "EOF",
		},
		"a host that nobody has told about": {
			prepare: func(s *sshd) { s.know() }, stage: conn.StageHostKey, reason: conn.HostKeyUnknown, permanent: true,
			says: "ssh-keyscan -p 22 192.0.2.5",
		},
		"known under another port": {
			prepare: func(s *sshd) {
				s.write("known_hosts", knownhosts.Line([]string{"192.0.2.5:2222"}, s.hostKeys[0].PublicKey()))
			},
			stage: conn.StageHostKey, reason: conn.HostKeyUnknown, permanent: true, says: "192.0.2.5:22",
		},
		"another key of the same kind": {
			prepare: func(s *sshd) { s.know(newKey(s.t, "ed25519").PublicKey()) },
			stage:   conn.StageHostKey, reason: conn.HostKeyMismatch, permanent: true, says: "known_hosts line 1",
		},
		"a key of a kind that the host has not": {
			prepare: func(s *sshd) { s.know(newKey(s.t, "ecdsa").PublicKey()) },
			stage:   conn.StageHostKey, reason: conn.HostKeyMismatch, permanent: true, says: "set up anew",
		},
		"a key with signatures by SHA-1 only": {
			prepare: func(s *sshd) {
				key, ok := newKey(s.t, "rsa").(ssh.AlgorithmSigner)
				require.True(s.t, ok)
				old, err := ssh.NewSignerWithAlgorithms(key, []string{ssh.KeyAlgoRSA})
				require.NoError(s.t, err)
				s.hostKeys = []ssh.Signer{old}
				s.know(old.PublicKey())
			},
			stage: conn.StageHostKey, reason: conn.HostKeyMismatch, permanent: true, says: `peer offered: ["ssh-rsa"]`,
		},
		"a revoked key": {
			prepare: func(s *sshd) {
				line := knownhosts.Line([]string{address}, s.hostKeys[0].PublicKey())
				s.write("known_hosts", line+"\n@revoked "+line)
			},
			stage: conn.StageHostKey, reason: conn.HostKeyMismatch, permanent: true, says: "revoked",
		},
		"forwarding is not allowed": {
			faults: faults{forbidsForwarding: true}, stage: conn.StageForward, reason: conn.ForwardRefused, permanent: true,
			says: "bridge: command",
		},
		"no socket, or OpenSSH does not allow it": {
			faults: faults{hasNoSocket: true}, stage: conn.StageForward, reason: conn.LibvirtUnreachable,
			says: "AllowStreamLocalForwarding",
		},
		"the channel hangs": {
			faults: faults{ignoresChannelOpen: true}, stage: conn.StageForward, reason: conn.Timeout, says: "deadline",
		},
		"cut off while libvirt is greeted": {
			faults: faults{cutsOffInOpening: true}, stage: conn.StageLibvirt, reason: conn.LibvirtUnreachable,
			says: "is libvirtd behind /run/libvirt/libvirt-sock?",
		},
		"libvirt does not answer": {
			prepare: func(s *sshd) { s.t.Cleanup(s.libvirtd.freeze()) },
			stage:   conn.StageLibvirt, reason: conn.Timeout, says: "deadline",
		},
		"something else than libvirt": {
			prepare: func(s *sshd) {
				s.libvirtd.handle(procAuthList, func(_ packet, send func(packet)) {
					send(packet{announcedLen: 0x54686973, payload: []byte("This account is not available.")})
				})
			},
			stage: conn.StageLibvirt, reason: conn.LibvirtUnreachable, says: `what answers is not libvirt: it begins with "This`,
		},
		"no command for the bridge": {
			faults: faults{commandFails: "sh: 1: nc: not found\n"}, bridge: conn.BridgeCommand,
			stage: conn.StageLibvirt, reason: conn.LibvirtUnreachable, says: `127: it said "sh: 1: nc: not found\n"`,
		},
		"cut off while the bridge is asked for": {
			faults: faults{cutsOffInBridge: true}, stage: conn.StageForward, reason: conn.ConnectionLost, says: "EOF",
		},
		"cut off while a session is asked for": {
			faults: faults{cutsOffInBridge: true}, bridge: conn.BridgeCommand,
			stage: conn.StageForward, reason: conn.ConnectionLost, says: "EOF",
		},
		"cut off while a command is asked for": {
			faults: faults{cutsOffInCommand: true}, bridge: conn.BridgeCommand,
			stage: conn.StageForward, reason: conn.ConnectionLost, says: "EOF",
		},
		"no command is allowed": {
			faults: faults{forbidsCommands: true}, bridge: conn.BridgeCommand,
			stage: conn.StageForward, reason: conn.ForwardRefused, permanent: true, says: "would not run the command",
		},
		"no session for the bridge": {
			faults: faults{forbidsSessions: true}, bridge: conn.BridgeCommand,
			stage: conn.StageForward, reason: conn.ForwardRefused, permanent: true, says: "bridge: forward",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSSHD(t)
				s.faults = c.faults
				if c.prepare != nil {
					c.prepare(s)
				}
				host := s.host(func(config *conn.Config) { config.Bridge = c.bridge })
				began := time.Now()
				err := host.Do(t.Context(), version)
				failed := failure(t, err)
				require.Equal(t, c.stage, failed.Stage, "%v", err)
				require.Equal(t, c.reason, failed.Reason, "%v", err)
				require.Equal(t, c.permanent, failed.Permanent())
				require.Contains(t, err.Error(), c.says)
				require.LessOrEqual(t, time.Since(began), conn.DefaultDialTimeout)
				s.set(func(f *faults) { *f = faults{} })
				synctest.Wait()
				require.Zero(t, s.connected(), "nothing is left of the attempt")
			})
		})
	}
}

// TestFailuresOfFiles is what is wrong with what is read before anybody is asked.
func TestFailuresOfFiles(t *testing.T) {
	t.Parallel()
	const sentinel = "c2VjcmV0LWtleS1tYXRlcmlhbA"
	for name, c := range map[string]struct {
		prepare   func(*sshd)
		reason    conn.Reason
		permanent bool
		says      []string
	}{
		"the key is not there yet": {
			prepare: func(s *sshd) { require.NoError(s.t, os.Remove(s.path("key"))) },
			reason:  conn.FileMissing, says: []string{"keyFile", "is not there"},
		},
		"known_hosts is not there yet": {
			prepare: func(s *sshd) { require.NoError(s.t, os.Remove(s.path("known_hosts"))) },
			reason:  conn.FileMissing, says: []string{"knownHostsFile", "is not there"},
		},
		"the key has a passphrase": {
			prepare: func(s *sshd) { s.write("key", encryptedKey(s.t)) },
			reason:  conn.FileInvalid, permanent: true, says: []string{"keyFile", "is encrypted", "without"},
		},
		"the key is none": {
			prepare: func(s *sshd) { s.write("key", "ssh-ed25519 "+sentinel) },
			reason:  conn.FileInvalid, permanent: true, says: []string{"keyFile", "holds no private key"},
		},
		"the key is damaged": {
			prepare: func(s *sshd) {
				s.write("key", "-----BEGIN OPENSSH PRIVATE KEY-----\n"+sentinel+"\n-----END OPENSSH PRIVATE KEY-----\n")
			},
			reason: conn.FileInvalid, permanent: true, says: []string{"keyFile", "holds no private key"},
		},
		"the key is empty": {
			prepare: func(s *sshd) { s.write("key", "") },
			reason:  conn.FileInvalid, permanent: true, says: []string{"keyFile", "holds no private key"},
		},
		"others may read the key": {
			prepare: func(s *sshd) { require.NoError(s.t, os.Chmod(s.path("key"), 0o644)) },
			reason:  conn.FileInvalid, permanent: true, says: []string{"keyFile", "0644", "no more than 0640"},
		},
		"the group may change the key": {
			prepare: func(s *sshd) { require.NoError(s.t, os.Chmod(s.path("key"), 0o660)) },
			reason:  conn.FileInvalid, permanent: true, says: []string{"keyFile", "0660"},
		},
		"others may say whom to trust": {
			prepare: func(s *sshd) { require.NoError(s.t, os.Chmod(s.path("known_hosts"), 0o666)) },
			reason:  conn.FileInvalid, permanent: true, says: []string{"knownHostsFile", "0666", "0644"},
		},
		"the key is a folder": {
			prepare: func(s *sshd) {
				require.NoError(s.t, os.Remove(s.path("key")))
				require.NoError(s.t, os.Mkdir(s.path("key"), 0o700))
			},
			reason: conn.FileInvalid, permanent: true, says: []string{"keyFile", "is no file"},
		},
		"the key is far too large": {
			prepare: func(s *sshd) { s.write("key", strings.Repeat(sentinel, 10_000)) },
			reason:  conn.FileInvalid, permanent: true, says: []string{"keyFile", "more than 65536"},
		},
		"known_hosts is garbage": {
			prepare: func(s *sshd) { s.write("known_hosts", "192.0.2.5 ssh-ed25519 !!!\n") },
			reason:  conn.FileInvalid, permanent: true, says: []string{"knownHostsFile", "known_hosts", "line 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSSHD(t)
			c.prepare(s)
			err := s.host().Do(t.Context(), version)
			failed := failure(t, err)
			require.Equal(t, conn.StageFiles, failed.Stage)
			require.Equal(t, c.reason, failed.Reason, "%v", err)
			require.Equal(t, c.permanent, failed.Permanent())
			for _, says := range append(c.says, s.dir) {
				require.Contains(t, err.Error(), says)
			}
			require.NotContains(t, err.Error(), sentinel)
			require.Zero(t, s.dialled(), "nobody was asked")
		})
	}
}

func encryptedKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("passphrase"))
	require.NoError(t, err)
	return string(pem.EncodeToMemory(block))
}

// TestHostKeys is which lines of known_hosts let a host pass that has several keys.
func TestHostKeys(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]func(s *sshd) string{
		"its RSA key only":     func(s *sshd) string { return knownhosts.Line([]string{address}, s.hostKeys[0].PublicKey()) },
		"its ECDSA key only":   func(s *sshd) string { return knownhosts.Line([]string{address}, s.hostKeys[1].PublicKey()) },
		"its Ed25519 key only": func(s *sshd) string { return knownhosts.Line([]string{address}, s.hostKeys[2].PublicKey()) },
		"an old key and the new one": func(s *sshd) string {
			return knownhosts.Line([]string{address}, newKey(s.t, "ed25519").PublicKey()) + "\n" +
				knownhosts.Line([]string{address}, s.hostKeys[2].PublicKey())
		},
		"a hashed name and Windows' line ends": func(s *sshd) string {
			return knownhosts.Line([]string{knownhosts.HashHostname("192.0.2.5")}, s.hostKeys[2].PublicKey()) + "\r\n"
		},
		"a line that is damaged, and a good one": func(s *sshd) string {
			return "192.0.2.5 ssh-ed25519 !!!\n" + knownhosts.Line([]string{address}, s.hostKeys[2].PublicKey())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSSHD(t)
			s.hostKeys = []ssh.Signer{newKey(t, "rsa"), newKey(t, "ecdsa"), newKey(t, "ed25519")}
			s.write("known_hosts", lines(s))
			require.NoError(t, s.host().Do(t.Context(), version))
		})
	}
}

func TestHostKeyOfAnAuthority(t *testing.T) {
	t.Parallel()
	s := newSSHD(t)
	authority := newKey(t, "ed25519")
	certificate := &ssh.Certificate{
		Key: s.hostKeys[0].PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"192.0.2.5"},
		ValidBefore: ssh.CertTimeInfinity,
	}
	require.NoError(t, certificate.SignCert(rand.Reader, authority))
	signed, err := ssh.NewCertSigner(certificate, s.hostKeys[0])
	require.NoError(t, err)
	s.hostKeys = []ssh.Signer{newKey(t, "rsa"), signed}
	s.write("known_hosts", "@cert-authority "+knownhosts.Line([]string{"*"}, authority.PublicKey()))
	require.NoError(t, s.host().Do(t.Context(), version))
}

// TestLibvirtRefuses: its own words are not wrapped.
func TestLibvirtRefuses(t *testing.T) {
	t.Parallel()
	s := newSSHD(t)
	s.libvirtd.handle(procOpen, func(p packet, send func(packet)) {
		send(p.reply(statusError, libvirtError(codeAuthRefused, "authentication failed: polkit")...))
	})
	err := s.host().Do(t.Context(), version)
	require.Equal(t, libvirt.Error{Code: codeAuthRefused, Message: "authentication failed: polkit"}, err)
}

// TestFilesAreReadForEveryConnection: a rotated key and a new host key need no restart, and an
// open connection is not cut for them.
func TestFilesAreReadForEveryConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		host := s.host()
		require.NoError(t, host.Do(t.Context(), version))
		s.writeKey()
		require.NoError(t, host.Do(t.Context(), version))
		require.Equal(t, 1, s.dialled())

		s.hostKeys = []ssh.Signer{newKey(t, "ed25519")}
		s.cut()
		synctest.Wait()
		require.Equal(t, conn.HostKeyMismatch, failure(t, host.Do(t.Context(), version)).Reason)
		s.know(s.hostKeys[0].PublicKey())
		require.NoError(t, host.Do(t.Context(), version))
	})
}

func TestBridges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change            func(*conn.Config)
		commands, sockets []string
	}{
		"the usual socket": {func(*conn.Config) {}, nil, []string{"/run/libvirt/libvirt-sock"}},
		"another socket":   {func(c *conn.Config) { c.Socket = "/x" }, nil, []string{"/x"}},
		"the usual command": {
			func(c *conn.Config) { c.Bridge = "command" }, []string{"nc -N -U /run/libvirt/libvirt-sock"}, nil,
		},
		"another command": {
			func(c *conn.Config) { c.Bridge, c.Command = "command", "virt-ssh-helper x" }, []string{"virt-ssh-helper x"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSSHD(t)
			host := s.host(c.change)
			require.NoError(t, host.Do(t.Context(), version))
			require.NoError(t, host.Close())
			require.Equal(t, c.commands, s.commands)
			require.Equal(t, c.sockets, s.sockets)
			require.Equal(t, 1, s.libvirtd.calls(procClose), "libvirt was told")
		})
	}
}

func TestDialEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSSHD(t)
		s.faults.silent = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := s.host().Do(ctx, version)
		require.Equal(t, conn.Timeout, failure(t, err).Reason)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		synctest.Wait()
		require.Zero(t, s.connected(), "nobody waits, so nobody dials")
	})
}
