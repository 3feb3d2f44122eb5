//go:build tools

package stockproxies

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/echo"
	"github.com/egressfleet/egressfleet/testsuite/output"
	"github.com/egressfleet/egressfleet/testsuite/ports"
)

const (
	// soon is longer than a stock proxy takes to start or to answer on loopback.
	soon = 30 * time.Second
	// look is between two looks at a port that is coming up.
	look = 20 * time.Millisecond
	// client and stranger are addresses to ask from.
	client, stranger = "127.0.0.1", "127.0.0.66"
	// nobody is an address of loopback where nothing listens.
	nobody = "127.255.255.1"
)

func limits() probe.Limits {
	return probe.Limits{Dial: soon, Answer: soon, Handshake: soon, Request: soon, Total: soon}
}

// from is a prober that asks from an address.
func from(address string) *probe.Prober {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &probe.Prober{Limits: limits(), Dial: dialer.DialContext}
}

// misled is a prober whose direct way to the target leads to another address: what
// only the proxy cannot reach.
func misled(target probe.Target, direct string) *probe.Prober {
	return &probe.Prober{Limits: limits(), Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == target.Address() {
			address = direct
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

// binary finds a program of a Debian package, or fails.
func binary(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{"/usr/sbin/" + name, "/usr/bin/" + name} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("%[1]s is not installed; on Debian: apt-get install -y --no-install-recommends %[1]s", name)
	return ""
}

// address is one of loopback that nobody else uses.
func address() string {
	return fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
}

// target serves an echo, on port 443 as the stock rules want it, or on another.
func target(t *testing.T, host string, port int) probe.Target {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	require.NoError(t, err, "a port below 1024 needs root, or net.ipv4.ip_unprivileged_port_start")
	server, err := echo.New(host, nobody, "target.example", "nowhere.example")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return probe.Target{Host: host, Port: port, Roots: server.Roots()}
}

// place is where a proxy may listen: an address of its own, so that no other test's
// proxy can be there when this one has not come up.
func place(t *testing.T) string { return net.JoinHostPort(address(), strconv.Itoa(freePort(t))) }

func freePort(t *testing.T) int {
	t.Helper()
	port, err := ports.Take()
	require.NoError(t, err)
	return port
}

// folder is one that the users of the proxies may read.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{filepath.Dir(dir), dir} {
		require.NoError(t, os.Chmod(path, 0o755))
	}
	return dir
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// start runs a proxy in the foreground until the test ends, and waits for its port.
func start(t *testing.T, at, path string, args ...string) probe.Proxy {
	t.Helper()
	said := new(output.Log)
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with its helpers
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	// All proxies of a test are told at once: squid takes two seconds to give its shared
	// memory back.
	context.AfterFunc(t.Context(), func() { _ = cmd.Process.Signal(syscall.SIGINT) })
	t.Cleanup(func() {
		select {
		case <-ended:
		case <-time.After(soon):
			t.Errorf("%s does not end", path)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its helpers
	})
	proxy := probe.Proxy{Address: at}
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			t.Errorf("%s ended: %s", path, said)
			return true
		default:
		}
		conn, err := net.DialTimeout("tcp", proxy.Address, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, soon, look, "%s does not listen on %s: %s", path, proxy.Address, said)
	if t.Failed() {
		t.FailNow()
	}
	return proxy
}

// with adds credentials to a proxy.
func with(t *testing.T, proxy probe.Proxy, text string) probe.Proxy {
	t.Helper()
	var err error
	proxy.Credentials, err = probe.ParseCredentials(text)
	require.NoError(t, err)
	return proxy
}

// verdict requires a reason, and returns the text.
func verdict(t *testing.T, reason string, v probe.Verdict) string {
	t.Helper()
	require.Equal(t, reason, v.Reason, "%s (%s)", v.Text, v.Cause)
	require.NotContains(t, v.Text, "sentinel")
	return v.Text
}

// servfail is a name server on loopback that fails for every name.
func servfail(t *testing.T) string {
	t.Helper()
	host := address()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", net.JoinHostPort(host, "53"))
	require.NoError(t, err, "port 53 needs root, or net.ipv4.ip_unprivileged_port_start")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for message := make([]byte, 512); ; {
			n, peer, err := conn.ReadFrom(message)
			if err != nil {
				return
			}
			if n > 3 {
				message[2] |= 0x80                      // an answer
				message[3] = message[3]&0xf0 | 0x80 | 2 // SERVFAIL
				_, _ = conn.WriteTo(message[:n], peer)
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	return host
}

// line is one line of a configuration.
func line(format string, args ...any) string { return fmt.Sprintf(format, args...) + "\n" }
