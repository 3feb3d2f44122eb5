package conn_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"google.golang.org/grpc/test/bufconn"

	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

const address = "192.0.2.5:22"

// faults are what an sshd does wrong, or what it does not allow.
type faults struct {
	refuse, silent     bool // before SSH
	speaks             string
	hangsInHandshake   bool
	refusesKeys        bool
	hangsInAuth        bool
	cutsOffInAuth      bool
	cutsOffInOpening   bool
	forbidsForwarding  bool
	hasNoSocket        bool
	forbidsSessions    bool
	forbidsCommands    bool
	cutsOffInBridge    bool
	cutsOffInCommand   bool
	commandFails       string // what it says
	ignoresKeepalives  bool
	ignoresChannelOpen bool
}

// sshd is a host behind an address: an SSH server in this process, and a libvirtd behind its
// bridge. Connections are kept in memory, so that time is in the test's hands.
type sshd struct {
	t        *testing.T
	hostKeys []ssh.Signer
	libvirtd *libvirtd
	serves   func(client io.ReadWriteCloser)                 // what is behind the bridge
	runs     func(command string, client io.ReadWriteCloser) // what is behind a session
	dir      string

	mu         sync.Mutex
	faults     faults
	authorized ssh.PublicKey
	open       map[net.Conn]struct{}
	dials      int
	commands   []string
	sockets    []string
}

func newSSHD(t *testing.T) *sshd {
	t.Helper()
	s := &sshd{t: t, libvirtd: newLibvirtd(), dir: t.TempDir(), open: map[net.Conn]struct{}{}}
	s.serves = s.libvirtd.serve
	s.runs = func(_ string, client io.ReadWriteCloser) { s.serves(client) }
	s.hostKeys = []ssh.Signer{newKey(t, "ed25519")}
	s.writeKey()
	s.know(s.hostKeys[0].PublicKey())
	return s
}

func newKey(t *testing.T, kind string) ssh.Signer {
	t.Helper()
	var key any
	var err error
	switch kind {
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return signer
}

// writeKey makes a new key of the client, which sshd accepts from now on, alone.
func (s *sshd) writeKey() {
	s.t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(s.t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(s.t, err)
	s.write("key", string(pem.EncodeToMemory(block)))
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authorized = signer.PublicKey()
}

func (s *sshd) know(keys ...ssh.PublicKey) {
	s.t.Helper()
	lines := ""
	for _, key := range keys {
		lines += knownhosts.Line([]string{address}, key) + "\n"
	}
	s.write("known_hosts", lines)
}

func (s *sshd) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sshd) write(name, content string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.path(name), []byte(content), 0o600))
}

func (s *sshd) config() conn.Config {
	return conn.Config{
		Host: "h1", Address: address, User: "fleet", KeyFile: s.path("key"), KnownHostsFile: s.path("known_hosts"),
		URI: "test:///default",
	}
}

// host is the way to it, closed at the end of the test.
func (s *sshd) host(change ...func(*conn.Config)) *conn.Host {
	s.t.Helper()
	config := s.config()
	for _, c := range change {
		c(&config)
	}
	require.NoError(s.t, config.Validate())
	host := conn.New(config, conn.WithDial(s.dial))
	s.t.Cleanup(func() { require.NoError(s.t, host.Close()) })
	return host
}

// set changes the faults that later connections, requests and channels meet.
func (s *sshd) set(change func(*faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

func (s *sshd) now() faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

func (s *sshd) dialled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

func (s *sshd) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// cut ends every connection, as a reset would.
func (s *sshd) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// placed is a connection with the addresses that TCP would give it.
type placed struct{ net.Conn }

func (placed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 5), Port: 22} }

func (s *sshd) dial(ctx context.Context, _, to string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	if s.faults.refuse {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connect: connection refused")}
	}
	if to != address {
		return nil, errors.New("dialled " + to)
	}
	between := bufconn.Listen(256 << 10)
	accepted := make(chan net.Conn, 1)
	go func() {
		server, err := between.Accept()
		if err == nil {
			accepted <- server
		}
	}()
	client, err := between.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	server := <-accepted
	s.open[server] = struct{}{}
	go func() {
		s.serve(server)
		_ = server.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, server)
	}()
	return placed{client}, nil
}

func (s *sshd) serve(tcp net.Conn) {
	f := s.now()
	switch {
	case f.silent:
		_, _ = io.Copy(io.Discard, tcp)
		return
	case f.speaks != "":
		_, _ = io.WriteString(tcp, f.speaks)
		return
	case f.hangsInHandshake:
		_, _ = io.WriteString(tcp, "SSH-2.0-slow\r\n")
		_, _ = io.Copy(io.Discard, tcp)
		return
	}
	server, channels, requests, err := ssh.NewServerConn(tcp, s.server(tcp))
	if err != nil {
		return
	}
	go s.answer(requests)
	for channel := range channels {
		if !s.now().ignoresChannelOpen {
			go s.bridge(channel)
		}
	}
	_ = server.Wait()
}

func (s *sshd) server(tcp net.Conn) *ssh.ServerConfig {
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		f := s.now()
		if f.cutsOffInAuth {
			_ = tcp.Close()
		}
		if f.hangsInAuth {
			_, _ = io.Copy(io.Discard, tcp)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.refusesKeys || string(key.Marshal()) != string(s.authorized.Marshal()) {
			return nil, errors.New("no")
		}
		return nil, nil
	}}
	config.KeyExchanges = []string{ssh.KeyExchangeCurve25519} // the cheapest
	for _, key := range s.hostKeys {
		config.AddHostKey(key)
	}
	return config
}

func (s *sshd) answer(requests <-chan *ssh.Request) {
	for request := range requests {
		if !s.now().ignoresKeepalives {
			_ = request.Reply(false, nil) // as OpenSSH does
		}
	}
}

func (s *sshd) bridge(asked ssh.NewChannel) {
	f := s.now()
	forward := asked.ChannelType() == "direct-streamlocal@openssh.com"
	switch {
	case forward && f.forbidsForwarding, !forward && f.forbidsSessions:
		_ = asked.Reject(ssh.Prohibited, "open failed")
		return
	case f.cutsOffInBridge:
		s.cut()
		return
	case forward && f.hasNoSocket:
		_ = asked.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	if forward {
		go ssh.DiscardRequests(requests)
		var to struct {
			Path, Reserved string
			Number         uint32
		}
		_ = ssh.Unmarshal(asked.ExtraData(), &to)
		s.mu.Lock()
		s.sockets = append(s.sockets, to.Path)
		s.mu.Unlock()
		s.behind(channel, s.serves)
		return
	}
	s.session(channel, requests)
}

func (s *sshd) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	for request := range requests {
		if s.now().cutsOffInCommand {
			s.cut()
			return
		}
		if request.Type != "exec" || s.now().forbidsCommands {
			_ = request.Reply(false, nil)
			continue
		}
		var line struct{ Command string }
		_ = ssh.Unmarshal(request.Payload, &line)
		s.mu.Lock()
		s.commands = append(s.commands, line.Command)
		s.mu.Unlock()
		_ = request.Reply(true, nil)
		if said := s.now().commandFails; said != "" {
			_, _ = io.WriteString(channel.Stderr(), said)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{127}))
			_ = channel.Close()
			continue
		}
		go s.behind(channel, func(client io.ReadWriteCloser) { s.runs(line.Command, client) })
	}
}

func (s *sshd) behind(client io.ReadWriteCloser, serve func(io.ReadWriteCloser)) {
	if s.now().cutsOffInOpening {
		s.cut()
		return
	}
	serve(client)
}
