//go:build integration

// These tests start a libvirtd of their own, without rights, for which Debian's libvirt-daemon,
// libvirt-clients and netcat-openbsd are needed. make test-integration-kvm runs them:
//
//	go test -tags=integration ./providers/kvm/conn
package conn_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/egressfleet/egressfleet/providers/kvm/conn"
)

// nobody is whom libvirtd runs as when root runs the tests, so that it is no system's libvirtd.
const nobody = 65534

// soon is how long a real process may take to do what it was asked.
const soon = 30 * time.Second

// daemon is a libvirtd in a folder.
type daemon struct {
	t       *testing.T
	dir     string
	process *os.Process
}

func newReal(t *testing.T) *daemon {
	t.Helper()
	r := &daemon{t: t, dir: t.TempDir()}
	require.NoError(t, os.Chmod(filepath.Dir(r.dir), 0o755))
	for _, name := range []string{"run", "home", "pool"} {
		path := filepath.Join(r.dir, name)
		require.NoError(t, os.Mkdir(path, 0o700))
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(path, nobody, nobody))
		}
	}
	conf := "auth_unix_rw = \"none\"\nlog_outputs = \"3:file:" + r.dir + "/home/log\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "conf"), []byte(conf), 0o644))
	r.start()
	return r
}

func (r *daemon) socket() string { return filepath.Join(r.dir, "run/libvirt/libvirt-sock") }

func (r *daemon) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.Env = []string{
		"HOME=" + r.dir + "/home", "XDG_RUNTIME_DIR=" + r.dir + "/run", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
	}
	if os.Geteuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return command
}

// start runs it until the end of the test, or until stop.
func (r *daemon) start() {
	r.t.Helper()
	path, err := exec.LookPath("/usr/sbin/libvirtd")
	require.NoError(r.t, err, "on Debian: apt-get install -y --no-install-recommends libvirt-daemon libvirt-clients")
	process := r.command(path, "-f", filepath.Join(r.dir, "conf"))
	require.NoError(r.t, process.Start())
	r.process = process.Process
	r.t.Cleanup(r.stop)
	require.Eventually(r.t, func() bool {
		c, err := net.Dial("unix", r.socket())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, soon, 20*time.Millisecond, "libvirtd listens at %s", r.socket())
}

func (r *daemon) stop() {
	if r.process != nil {
		_ = r.process.Kill()
		_, _ = r.process.Wait()
		r.process = nil
	}
}

func (r *daemon) signal(signal syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.process.Signal(signal))
}

// sshd is one in front of it: it forwards to the socket, and runs commands.
func (r *daemon) sshd() *sshd {
	r.t.Helper()
	s := newSSHD(r.t)
	s.serves = func(client io.ReadWriteCloser) {
		defer func() { _ = client.Close() }()
		socket, err := net.Dial("unix", r.socket())
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(socket, client)
			_ = socket.Close()
		}()
		_, _ = io.Copy(client, socket)
		_ = socket.Close()
	}
	s.runs = func(line string, client io.ReadWriteCloser) {
		defer func() { _ = client.Close() }()
		command := r.command("sh", "-c", line)
		command.Stdout = client
		in, err := command.StdinPipe()
		if err != nil || command.Start() != nil {
			return
		}
		go func() {
			_, _ = io.Copy(in, client)
			_ = in.Close()
		}()
		_ = command.Wait()
	}
	return s
}

func domains(l *libvirt.Libvirt) ([]libvirt.Domain, error) {
	found, _, err := l.ConnectListAllDomains(1, 0)
	return found, err
}

func TestRealLibvirt(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	for name, change := range map[string]func(*conn.Config){
		"forwarding":      func(*conn.Config) {},
		"nc":              func(c *conn.Config) { c.Bridge, c.Command = "command", "nc -N -U "+r.socket() },
		"virt-ssh-helper": func(c *conn.Config) { c.Bridge, c.Command = "command", "virt-ssh-helper qemu:///session" },
	} {
		host := r.sshd().host(change)
		for _, do := range []conn.Doer{host.Do, host.Probe} {
			found, err := conn.Call(t.Context(), do, domains)
			require.NoError(t, err, name)
			require.Len(t, found, 1, name)
			require.Equal(t, "test", found[0].Name)
		}
		_, err := conn.Call(t.Context(), host.Do, func(l *libvirt.Libvirt) (libvirt.Domain, error) {
			return l.DomainLookupByName("nobody")
		})
		require.True(t, libvirt.IsNotFound(err), "%s: %v", name, err)
	}
}

func TestRealRestart(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	s := r.sshd()
	host := s.host()
	require.NoError(t, host.Do(t.Context(), version))
	r.signal(syscall.SIGSTOP)
	call := background(func() error { return host.Do(t.Context(), version) })
	r.stop()
	require.Equal(t, conn.ConnectionLost, failure(t, <-call).Reason)
	require.Equal(t, conn.LibvirtUnreachable, failure(t, host.Do(t.Context(), version)).Reason)
	r.start()
	require.NoError(t, host.Do(t.Context(), version))
}

// TestRealFreeze: a libvirtd that takes calls and answers none is left, and found again.
func TestRealFreeze(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	s := r.sshd()
	host := s.host(func(c *conn.Config) { c.PingTimeout = 200 * time.Millisecond })
	require.NoError(t, host.Do(t.Context(), version))
	r.signal(syscall.SIGSTOP)
	other := background(func() error { return host.Do(t.Context(), version) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Equal(t, conn.Timeout, failure(t, host.Do(ctx, version)).Reason)
	require.ErrorContains(t, <-other, "libvirt was silent for 200ms")
	r.signal(syscall.SIGCONT)
	require.NoError(t, host.Do(t.Context(), version))
	require.Equal(t, 2, s.dialled())
	r.signal(syscall.SIGSTOP)
	require.NoError(t, host.Close())
}

// TestRealUploads: what is longer than was declared is refused, thirty times on one connection,
// none of which hangs; and short of that the volume holds what was sent.
func TestRealUploads(t *testing.T) {
	t.Parallel()
	const declared = 1 << 20
	r := newReal(t)
	s := r.sshd()
	host := s.host(func(c *conn.Config) { c.URI = "storage:///session" })
	volume, err := conn.Call(t.Context(), host.Do, func(l *libvirt.Libvirt) (libvirt.StorageVol, error) {
		pool, err := l.StoragePoolCreateXML(fmt.Sprintf(
			`<pool type="dir"><name>p</name><target><path>%s/pool</path></target></pool>`, r.dir), 0)
		if err != nil {
			return libvirt.StorageVol{}, err
		}
		return l.StorageVolCreateXML(pool, fmt.Sprintf(
			`<volume><name>v</name><capacity>%d</capacity></volume>`, declared), 0)
	})
	require.NoError(t, err)
	upload := func(size int64) error {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		return host.Do(ctx, func(l *libvirt.Libvirt) error {
			return l.StorageVolUpload(volume, io.LimitReader(xs{}, size), 0, declared, 0)
		})
	}
	for range 30 {
		require.IsType(t, libvirt.Error{}, upload(8*declared)) //nolint:testifylint // nothing may be wrapped
	}
	require.NoError(t, upload(declared))
	require.Equal(t, 1, s.dialled())
	stored, err := os.ReadFile(filepath.Join(r.dir, "pool/v"))
	require.NoError(t, err)
	require.Len(t, stored, declared)
}

type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestRealConnects(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	s := r.sshd()
	host := s.host()
	for range 100 {
		require.NoError(t, host.Probe(t.Context(), version))
	}
	require.Eventually(t, func() bool { return s.connected() == 0 }, soon, 10*time.Millisecond)
	log, err := os.ReadFile(filepath.Join(r.dir, "home/log"))
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(log, []byte("End of file")), 1, "libvirt was told each time, but at the start")
}
