package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/egressfleet/egressfleet/testsuite/ports"
	"github.com/egressfleet/egressfleet/testsuite/usage"
)

// conf is Debian's own, but without a log of requests, which ours does not write either,
// and with connections that stay open as long as they are used.
const conf = `daemon off;
pid %[1]s/nginx.pid;
worker_processes auto;
events { worker_connections 768; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  types_hash_max_size 2048;
  keepalive_requests 1000000000;
  default_type application/octet-stream;
  client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s;
  uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
  server {
    listen 127.0.0.1:%[2]d;
    root %[1]s/files;
    location /json { default_type application/json; }
    location /txt { default_type "text/plain; charset=utf-8"; }
  }
}
`

const (
	upWithin  = 10 * time.Second
	lookEvery = 20 * time.Millisecond
)

// nginx is the baseline: it serves files of the same bytes.
type nginx struct {
	address string
	dir     string
	cmd     *exec.Cmd
}

// newNginx serves some files, by name. It takes nothing from the system's own nginx, and
// does not disturb it.
func newNginx(ctx context.Context, files map[string][]byte) (n *nginx, err error) {
	program, err := lookNginx()
	if err != nil {
		return nil, err
	}
	port, err := ports.Take()
	if err != nil {
		return nil, err
	}
	n = &nginx{address: fmt.Sprintf("127.0.0.1:%d", port)}
	if n.dir, err = os.MkdirTemp("", "bench-nginx-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err := n.write(port, files); err != nil {
		return n, err
	}
	args := []string{"-p", n.dir, "-c", filepath.Join(n.dir, "conf"), "-e", "stderr"}
	n.cmd = exec.Command(program, args...) //nolint:gosec,noctx // closed by close
	n.cmd.Stderr = os.Stderr
	if err := n.cmd.Start(); err != nil {
		return n, err
	}
	return n, up(ctx, n.address)
}

func lookNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("nginx, the baseline, is not installed; " +
		"on Debian: apt-get install -y --no-install-recommends nginx")
}

// write makes the folder readable for the user that the workers of nginx become.
func (n *nginx) write(port int, files map[string][]byte) error {
	const folder, file = 0o755, 0o644
	faults := []error{
		os.Chmod(n.dir, folder),
		os.Mkdir(filepath.Join(n.dir, "files"), folder),
		os.WriteFile(filepath.Join(n.dir, "conf"), fmt.Appendf(nil, conf, n.dir, port), file),
	}
	for name, content := range files {
		faults = append(faults, os.WriteFile(filepath.Join(n.dir, "files", name), content, file))
	}
	return errors.Join(faults...)
}

// up waits until somebody listens.
func up(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", address, err)
		}
	}
}

// spent is the processor time of its workers.
func (n *nginx) spent() (sum time.Duration, err error) {
	master := strconv.Itoa(n.cmd.Process.Pid)
	workers, err := os.ReadFile(filepath.Join("/proc", master, "task", master, "children")) //nolint:gosec // of /proc
	if err != nil {
		return 0, err
	}
	for worker := range strings.FieldsSeq(string(workers)) {
		pid, err := strconv.Atoi(worker)
		if err != nil {
			return 0, err
		}
		u, err := usage.Of(pid)
		if err != nil {
			return 0, err
		}
		sum += u.CPU()
	}
	return sum, nil
}

func (n *nginx) close() error {
	if n.cmd != nil && n.cmd.Process != nil {
		_ = n.cmd.Process.Signal(os.Interrupt)
		_ = n.cmd.Wait()
	}
	return os.RemoveAll(n.dir)
}
