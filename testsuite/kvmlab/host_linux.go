package kvmlab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// hostEnv holds the Host that a process of the stage host plays, as JSON.
const hostEnv = "KVMLAB_HOST"

// runHost is the first process of a host: it lays the host's own files over the
// machine's, starts the daemons and reaps what they leave. It ends when it is killed, and
// everything on the host with it, as by a loss of power.
func runHost() (int, error) {
	var h Host
	if err := json.Unmarshal([]byte(os.Getenv(hostEnv)), &h); err != nil {
		return 0, fmt.Errorf("%s: %w", hostEnv, err)
	}
	if err := errors.Join(privateMounts(), h.overlay(), syscall.Sethostname([]byte(h.Name))); err != nil {
		return 0, err
	}
	if err := run("ip", "link", "set", "lo", "up"); err != nil {
		return 0, err
	}
	for _, daemon := range [][]string{
		{"virtlogd"}, {"libvirtd"}, {"/usr/sbin/sshd", "-D", "-e", "-f", h.file("sshd_config")}, // it wants its path
	} {
		if err := h.daemon(daemon); err != nil {
			return 0, err
		}
	}
	return reap(0)
}

// overlay puts the host's folders in the place of the machine's.
func (h Host) overlay() error {
	for from, to := range map[string]string{
		"run": "/run", "lib": "/var/lib/libvirt", "log": "/var/log/libvirt", "cache": "/var/cache/libvirt",
		"etc":    "/etc/libvirt",
		"passwd": "/etc/passwd", "group": "/etc/group", "shadow": "/etc/shadow",
		"hosts": "/etc/hosts", "resolv.conf": "/etc/resolv.conf",
	} {
		if err := mount(h.file(from), to, "", syscall.MS_BIND); err != nil {
			return err
		}
	}
	return errors.Join(mount("tmpfs", PoolPath, "tmpfs", 0), resizePool(poolSize))
}

// resizePool bounds what the pool's file system takes, in bytes.
func resizePool(bytes uint64) error {
	return run("mount", "-o", "remount,size="+strconv.FormatUint(bytes, 10), PoolPath)
}

// file is a path below the host's own folder.
func (h Host) file(name string) string { return filepath.Join(h.Dir, name) }

// daemon starts a program whose words go to a file of the host.
func (h Host) daemon(command []string) error {
	log, err := os.Create(h.file(filepath.Base(command[0]) + ".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()              // the program has its own
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx,gosec // from the table above
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=" + path, "LC_ALL=C.UTF-8"}
	return cmd.Start()
}
