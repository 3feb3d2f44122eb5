//go:build tools && linux

package namespaces

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/egressfleet/egressfleet/activities/probe"
	"github.com/egressfleet/egressfleet/internal/echo"
)

// The addresses are those that are kept for documentation. Every namespace but the one
// of the proxies has one link, to it; nothing leads out.
const (
	clientIP   = "192.0.2.2"
	strangerIP = "198.51.100.2"
	targetIP   = "203.0.113.2"
	// proxyIP is where the proxies listen, and what the target sees of them.
	proxyIP = "203.0.113.1"

	soon = time.Minute // generous: the machine may be busy
	tick = 20 * time.Millisecond
)

// namespace is the name of a network namespace.
type namespace string

// world is four namespaces: the proxies' leads to the three others, which reach each
// other through it.
type world struct {
	t                                 *testing.T
	proxies, client, stranger, target namespace
}

func newWorld(t *testing.T) *world {
	t.Helper()
	require.Zero(t, os.Getuid(), "network namespaces need root")
	id := cmp.Or(os.Getenv("NETNS_PREFIX"), "egf") + "-" + strings.ToLower(rand.Text()[:6])
	w := &world{
		t: t, proxies: namespace(id + "-proxies"), client: namespace(id + "-client"),
		stranger: namespace(id + "-stranger"), target: namespace(id + "-target"),
	}
	for _, n := range []namespace{w.proxies, w.client, w.stranger, w.target} {
		ip(t, "netns", "add", string(n))
		t.Cleanup(func() { ip(t, "netns", "delete", string(n)) })
		ip(t, "-n", string(n), "link", "set", "lo", "up")
	}
	w.link(w.client, "192.0.2.1", clientIP)
	w.link(w.stranger, "198.51.100.1", strangerIP)
	w.link(w.target, proxyIP, targetIP)
	require.NoError(t, w.proxies.inside(func() error { // what is below /proc/sys/net is the thread's own
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600)
	}))
	return w
}

// link connects a namespace with the one of the proxies, which is its way to the others.
func (w *world) link(to namespace, near, far string) {
	w.t.Helper()
	name := strings.TrimPrefix(string(to[strings.LastIndex(string(to), "-"):]), "-")
	ip(w.t, "link", "add", name, "netns", string(w.proxies), "type", "veth", "peer", "name", "up0", "netns", string(to))
	ip(w.t, "-n", string(w.proxies), "address", "add", near+"/24", "dev", name)
	ip(w.t, "-n", string(w.proxies), "link", "set", name, "up")
	ip(w.t, "-n", string(to), "address", "add", far+"/24", "dev", "up0")
	ip(w.t, "-n", string(to), "link", "set", "up0", "up")
	ip(w.t, "-n", string(to), "route", "add", "default", "via", near)
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", strings.Join(args, " "), out)
}

// inside runs f on a thread that is in the namespace; the sockets that it opens stay
// there. The thread ends with the goroutine, since it is not unlocked.
func (n namespace) inside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			file, err := os.Open("/run/netns/" + string(n))
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("entering %s: %w", n, err)
			}
			return f()
		}()
	}()
	return <-done
}

// dial connects from within the namespace.
func (n namespace) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = n.inside(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// prober is one whose address is in the namespace.
func (n namespace) prober() *probe.Prober {
	patient := probe.Limits{Dial: soon, Answer: soon, Handshake: soon, Request: soon, Total: soon}
	return &probe.Prober{Dial: n.dial, Limits: patient}
}

// serveTarget serves the echo on the port that stock proxies tunnel to.
func (w *world) serveTarget() probe.Target {
	w.t.Helper()
	server, err := echo.New(targetIP)
	require.NoError(w.t, err)
	var l net.Listener
	require.NoError(w.t, w.target.inside(func() (err error) {
		l, err = new(net.ListenConfig).Listen(w.t.Context(), "tcp", targetIP+":443")
		return err
	}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, slog.New(slog.DiscardHandler)) }()
	w.t.Cleanup(func() { cancel(); require.NoError(w.t, <-ended) })
	return probe.Target{Host: targetIP, Port: 443, Roots: server.Roots()}
}
