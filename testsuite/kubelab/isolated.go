//go:build linux

package kubelab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// isolated is set in the process that Isolated starts, to the folder for temporary files
// around it.
const isolated = "EGRESSFLEET_KUBELAB_ISOLATED"

// unshare runs a script as the first process of network, process and mount namespaces.
// When it ends, the kernel ends everything else in them, and they are gone.
func unshare(script string, args ...string) *exec.Cmd {
	argv := append([]string{
		"--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
		"sh", "-ec", script, "sh",
	}, args...)
	return exec.Command("unshare", argv...) //nolint:gosec,noctx // who calls ends it
}

// Isolated runs something, usually the tests of a package, in a process of this binary
// that has network, processes and mounts of its own, and returns its exit code. A suite
// that starts real nodes calls it in TestMain. It needs root. There is no network in
// there but that of nodes: downloads come first. Temporary files are in a folder of their
// own, which the next run removes if this one is killed.
func Isolated(do func() int) int {
	if os.Getenv(isolated) != "" {
		return do()
	}
	code, err := again()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelab:", err)
		return 1
	}
	return code
}

func again() (code int, err error) {
	if os.Getuid() != 0 {
		return 0, errors.New("namespaces need root")
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	scratch, done, err := newScratch(filepath.Join(os.TempDir(), "egressfleet-kubelab"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	// The shell stays as the first process: it buries what others leave.
	cmd := unshare(`ip link set lo up
ip link add `+bridge+` type bridge
ip addr add `+WorldAddress+`/16 dev `+bridge+`
ip link set `+bridge+` up
code=0; "$@" || code=$?; exit $code`, append([]string{self}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), isolated+"="+os.TempDir(), "TMPDIR="+scratch)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The kernel ends the child when the thread that started it ends.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode(), nil
	}
	return 0, err
}

// Listen listens on the address by which Pods find what the isolated process serves.
func Listen(ctx context.Context) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(WorldAddress, "0"))
}
