//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// contained is the argument that makes this program the beginning of the worker's
// process; then follow the root, the control group and the worker's arguments.
const contained = "contained"

// enter goes into the control group and the root, gives up every right, and becomes the
// worker. It is called in a mount namespace of its own, and returns only an error.
func enter(root string, args []string) error {
	runtime.LockOSThread() // what is given up below is given up by a thread
	pid := []byte(strconv.Itoa(os.Getpid()))
	members := filepath.Join(args[0], "cgroup.procs")
	if err := os.WriteFile(members, pid, 0o600); err != nil { //nolint:gosec // the group that the box made
		return fmt.Errorf("entering the control group: %w", err)
	}
	if err := mounts(root); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	if err := pivot(root); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	err := errors.Join(unix.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	if err != nil {
		return fmt.Errorf("giving up rights: %w", err)
	}
	return syscall.Exec("/worker", append([]string{"/worker"}, args[1:]...), nil) //nolint:gosec // what the box holds
}

// mounts makes the root a mount, with what a container has in it.
func mounts(root string) error {
	const still = unix.MS_NOSUID | unix.MS_NODEV
	private := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if private != nil {
		return private
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	groups := filepath.Join(root, "sys/fs/cgroup")
	return errors.Join(
		unix.Mount("proc", filepath.Join(root, "proc"), "proc", still|unix.MS_NOEXEC, ""),
		unix.Mount("/sys/fs/cgroup", groups, "", unix.MS_BIND|unix.MS_REC, ""),
		unix.Mount("", groups, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""),
		unix.Mount("tmpfs", filepath.Join(root, "tmp"), "tmpfs", still, "size=64m,mode=1777"),
		unix.Mount("", root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|still, ""))
}

// pivot makes the root that of the process, and lets go of the old one.
func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old one is on top of the new one then
		return err
	}
	return errors.Join(unix.Unmount(".", unix.MNT_DETACH), unix.Chdir("/"))
}
