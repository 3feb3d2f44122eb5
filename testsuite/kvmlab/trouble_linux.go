package kvmlab

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"syscall"
)

const (
	// poolSize is enough for a Debian and what its guests write, in bytes.
	poolSize = 2 << 30
	// least is what a file system has at least, in bytes: 0 would be no bound at all.
	least = 1 << 20
)

// FillPool leaves no room in the pool, until EmptyPool.
func (h *Host) FillPool() error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(h.Path(PoolPath), &fs); err != nil {
		return err
	}
	used := (fs.Blocks - fs.Bfree) * uint64(fs.Bsize) //nolint:gosec // a size of a block
	return h.resize(max(used, least))
}

// EmptyPool ends what FillPool did.
func (h *Host) EmptyPool() error { return h.resize(poolSize) }

func (h *Host) resize(bytes uint64) error {
	_, err := h.Run(context.Background(), nil,
		"mount", "-o", "remount,size="+strconv.FormatUint(bytes, 10), PoolPath)
	return err
}

// AuthorizedKeys is the file with the keys of a user, which sshd reads for every login.
func (h *Host) AuthorizedKeys(user string) string { return h.file("authorized/" + user) }

// HangUp ends the SSH connections of the host, and lets new ones in.
func (h *Host) HangUp() error {
	_, err := h.Run(context.Background(), nil, "pkill", "-KILL", "-f", `^sshd: [^/]`)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil // there was none
	}
	return err
}
